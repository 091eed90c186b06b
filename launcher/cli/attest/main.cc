// caisson-attest: fetches a signed statement from the running launcher, or verifies one that somebody holds. A program of its
// own, because `caisson`, which starts it, must not carry libcrypto to every `caisson run`.
#include <unistd.h>

#include <cstdio>

#include "launcher/cli/args.h"
#include "launcher/cli/attest/open_token.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/control_client.h"
#include "launcher/common/attest/base64url.h"
#include "launcher/common/attest/token.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

constexpr Flag kFlags[] = {{"--session", "-s", true}, {"--nonce", "-n", true}, {"--token", "", false},
                           {"--verify", "", true},    {"--key", "-k", true},   {"--max-age", "", true}};

// A file's text, "-" for standard input, without the white space around it.
Result<std::string> read_text(const std::string& path) {
  TRY_ASSIGN(std::string text, path == "-" ? sys::read_fd(0, kMaxFile) : sys::read_file(path, kMaxFile));
  const auto from = text.find_first_not_of(" \t\r\n"), to = text.find_last_not_of(" \t\r\n");
  return from == std::string::npos ? std::string() : text.substr(from, to - from + 1);
}

// A token, or the JSON object with "token" in it that the API and --json give.
Result<std::string> token_of(const std::string& text) {
  if (text.empty() || text[0] != '{') return text;
  TRY_ASSIGN(const json::Value answer, json::parse(text, {.max_bytes = kMaxFile}));
  const json::Value& inner = answer.contains("data") && answer["data"].is_object() ? answer["data"] : answer;
  TRY_ASSIGN(const auto token, json::get_string(inner, "token"));
  if (!token) return fail(Code::invalid_argument, "no 'token' in the JSON object");
  return *token;
}

// A JWK in a file, or the thumbprint-independent part of it: the 32 bytes in base64url.
Result<json::Value> key_of(const std::string& given) {
  if (given.size() == 43 && attest::from_base64url(given)) return json::Value{{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", given}};
  TRY_ASSIGN(const std::string text, read_text(given));
  TRY_ASSIGN(json::Value jwk, json::parse(text, {.max_bytes = kMaxFile}));
  if (!jwk.is_object()) return fail(Code::invalid_argument, "the key must be a JWK, or its x in base64url");
  return jwk.contains("key") && jwk["key"].is_object() ? jwk["key"] : jwk;
}

void print_residual(const json::Value& list) {
  std::printf("\nnot stopped:\n");
  if (list.empty()) std::printf("  nothing that is known\n");
  for (const json::Value& r : list) std::printf("  %-20s %s\n", json::text_of(r, "id").c_str(), json::text_of(r, "what").c_str());
}

void print_session(const json::Value& confinement) {
  std::printf("policy  %s, %s\n\n", json::text_of(confinement, "domain").c_str(),
              json::text_of(confinement, "policy_digest").c_str());
  for (const json::Value& m : confinement["mechanisms"]) {
    std::string proof;
    for (const json::Value& v : m.value("verified", json::Value::array()))
      proof += (proof.empty() ? "" : ", ") + json::text_of(v, "what") + "=" + json::text_of(v, "result");
    if (proof.empty()) proof = json::text_of(m, "detail");
    std::printf("  %-14s %-12s %s\n", json::text_of(m, "name").c_str(), json::text_of(m, "state").c_str(), proof.c_str());
  }
  print_residual(confinement["residual"]);
}

void print_boot(const json::Value& statement) {
  for (const json::Value& p : statement["policies"]) {
    const bool ready = json::text_of(p, "state") == "ready";
    std::printf("policy  %-12s %s\n", json::text_of(p, "domain").c_str(),
                ready ? json::text_of(p, "digest").c_str() : ("refused: " + json::text_of(p, "why")).c_str());
  }
  for (const json::Value& p : statement["policies"])
    for (const json::Value& port : p.value("published_ports", json::Value::array()))
      std::printf("door    no key is required of anybody for port %s of a workspace while a session of %s runs there\n",
                  json::dump(port).c_str(), json::text_of(p, "domain").c_str());
  for (const json::Value& p : statement["policies"])
    if (const json::Value areas = p.value("api", json::Value::array()); !areas.empty())
      std::printf("api     sessions of %s may use %s of their workspace's API\n", json::text_of(p, "domain").c_str(),
                  json::dump(areas).c_str());
  for (const json::Value& why : statement["why_not_higher"]) std::printf("note    %s\n", why.get<std::string>().c_str());
  print_residual(statement["residual"]);
}

// Who needs no key.
void print_door(const json::Value& door) {
  if (!door.is_object()) return;  // of a launcher that did not say it
  if (!door.value("key_required", true)) return (void)std::printf("door    everybody is served without a key\n");
  const json::Value peers = door.value("trusted_peers", json::Value::object());
  const auto count = peers.value("count", std::uint64_t{0});
  std::string text;
  for (const json::Value& range : peers.value("ranges", json::Value::array()))
    if (range.is_string()) text += (text.empty() ? "" : ", ") + range.get<std::string>();
  if (count > peers.value("ranges", json::Value::array()).size()) text += ", ...";
  std::printf("door    %s\n", count == 0 ? "a key is required of everybody" : ("no key is required of " + text).c_str());
}

void print_statement(const json::Value& claims) {
  const json::Value& s = claims["caisson"];
  std::printf("tier    %s\nkernel  %s, Landlock ABI %d\nboot    %s, since %s\nnonce   %s\n", json::text_of(s, "tier").c_str(),
              json::text_of(s["kernel"], "release").c_str(), s["kernel"].value("landlock_abi", 0),
              json::text_of(s["boot"], "id").c_str(), json::text_of(s["boot"], "started").c_str(),
              claims.contains("eat_nonce") ? json::text_of(claims, "eat_nonce").c_str() : "none");
  print_door(s.value("front_door", json::Value()));
  if (json::text_of(s, "kind") == "session") print_session(s["confinement"]);
  else print_boot(s);
}

Result<int> verify(const Args& args, const Options& options) {
  const auto key = args.last("--key");
  if (!key)
    return fail(Code::invalid_argument, "--verify needs --key: the launcher's public key, known from elsewhere than the token");
  attest::Expectation expected{args.last("--nonce"), std::nullopt, sys::realtime_ns() / 1'000'000'000};
  if (const auto age = args.last("--max-age")) {
    if (age->empty() || age->size() > 9 || age->find_first_not_of("0123456789") != std::string::npos)
      return fail(Code::invalid_argument, "--max-age must be a number of seconds");
    expected.max_age_s = std::stoll(*age);
  }
  TRY_ASSIGN(const std::string text, read_text(*args.last("--verify")));
  TRY_ASSIGN(const std::string token, token_of(text));
  TRY_ASSIGN(const json::Value jwk, key_of(*key));
  TRY_ASSIGN(const json::Value claims, attest::open_token(token, jwk, expected));
  if (options.json) return print_json(claims), 0;
  std::printf("verified: signed by this key%s\n",
              expected.nonce ? ", for this nonce" : "; no nonce was asked for, so it may be old");
  print_statement(claims);
  return 0;
}

Result<int> fetch(const Args& args, const Options& options) {
  json::Value request = json::Value::object();
  if (const auto nonce = args.last("--nonce")) {
    TRY(attest::check_nonce(*nonce));
    request["nonce"] = *nonce;
  }
  if (const auto session = args.last("--session")) request["session"] = *session;
  TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
  TRY_ASSIGN(const json::Value answer, control.ask("attest", std::move(request)));
  const std::string token = json::text_of(answer, "token");
  if (args.has("--token")) return print(token + "\n"), 0;
  TRY_ASSIGN(const json::Value claims,
             attest::open_token(token, answer["key"], {args.last("--nonce"), {}, sys::realtime_ns() / 1'000'000'000}));
  if (options.json) return print_json({{"token", token}, {"key", answer["key"]}, {"claims", claims}}), 0;
  print_statement(claims);
  std::printf("\nkey     %s (kid %s)\n", json::text_of(answer["key"], "x").c_str(), json::text_of(answer["key"], "kid").c_str());
  return 0;
}

Result<int> attest(const Args& args, const Options& options) {
  return args.has("--verify") ? verify(args, options) : fetch(args, options);
}

Status check_root(const std::string& given, const std::string& text, const std::string& signature) {
  TRY_ASSIGN(const json::Value jwk, key_of(given));
  const auto key = attest::from_base64url(json::text_of(jwk, "x")), bytes = attest::from_base64url(signature);
  if (!key || key->size() != 32 || json::text_of(jwk, "crv") != "Ed25519")
    return fail(Code::invalid_argument, "the key must be an Ed25519 JWK, or its x in base64url");
  if (!bytes) return fail(Code::permission_denied, "BAD: not base64url");
  return attest::verify(*key, text, *bytes) ? Status()
                                            : fail(Code::permission_denied, "BAD: not made by this key over this root");
}

constexpr Command kCommands[] = {
    {"audit verify", "proves that logs are as they were written, and signed",
     "caisson audit verify --key; it starts this program. Its help: caisson audit verify --help\n", Syntax(kVerifyFlags, 0, 1000),
     audit_verify},
    {"attest", "a signed statement of what is enforced",
     "caisson attest; it starts this program. Its help: caisson attest --help\n", Syntax(kFlags), attest}};

}  // namespace
}  // namespace caisson::cli

int main(int argc, char** argv) {
  caisson::cli::g_check_signature = caisson::cli::check_root;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int status = caisson::cli::dispatch(caisson::cli::kCommands, words);
  return std::fflush(stdout) != 0 && status == 0 ? caisson::code_exit_status(caisson::Code::io) : status;
}
