// Prints the problems that Redocly's recommended rules find in an OpenAPI document: what `redocly lint` prints, by the same library,
// which the generator of types brings along.
import { createConfig, lint } from "@redocly/openapi-core";

const problems = await lint({ ref: process.argv[2], config: await createConfig({ extends: ["recommended"] }) });
console.log(JSON.stringify(problems.map((p) => ({ severity: p.severity, rule: p.ruleId, message: p.message, at: p.location[0]?.pointer }))));
