"""image/compose.yaml and image/kubernetes.yaml: what they ask for, given to the engine that is here, serves in the tier that they name.

Neither Compose nor a cluster is here: each setting is translated into the engine's own flag, and one that is not known fails."""
import json
import pathlib

import pytest
import yaml

from conftest import ROOT, sh, with_flags

def known(settings: dict, *names) -> dict:
    """Nothing in the file is left out in silence."""
    assert settings.keys() <= set(names), f"no translation of {sorted(settings.keys() - set(names))}"
    return settings


def capabilities(drop, add) -> list:
    return [f"--cap-drop={c}" for c in drop] + [f"--cap-add={c}" for c in add]


def of_compose(file: pathlib.Path) -> list:
    service = known(yaml.safe_load(file.read_text())["services"], "caisson")["caisson"]
    known(service, "image", "ports", "environment", "cap_drop", "cap_add", "security_opt", "stop_grace_period", "restart")
    assert service["image"] == "caisson" and service["ports"] == ["127.0.0.1:8080:8080"]
    assert service["environment"] == {"SANDBOX_API_KEY": "${SANDBOX_API_KEY:-}"}
    flags = capabilities(service["cap_drop"], service["cap_add"])
    for option in service["security_opt"]:
        name, _, value = option.partition("=")
        flags += ["--security-opt", f"seccomp={file.parent / value}" if name == "seccomp" else option]
    return flags


def of_pod(pod: dict, runtime_default: pathlib.Path) -> list:
    spec = known(pod["spec"], "hostUsers", "automountServiceAccountToken", "securityContext", "containers", "volumes")
    (container,) = spec["containers"]
    known(container, "name", "image", "ports", "env", "securityContext", "readinessProbe", "livenessProbe", "volumeMounts")
    assert container["image"] == "caisson" and container["ports"] == [{"containerPort": 8080}]
    assert [e["name"] for e in container["env"]] == ["SANDBOX_API_KEY"] and spec["automountServiceAccountToken"] is False
    context = known({**spec.get("securityContext", {}), **container["securityContext"]}, "runAsNonRoot", "runAsUser", "runAsGroup",
                    "fsGroup", "seccompProfile", "procMount", "capabilities", "allowPrivilegeEscalation")
    flags = capabilities(context["capabilities"]["drop"], context["capabilities"].get("add", []))
    if spec.get("hostUsers") is False:
        sh("bash", "-c", f'. {ROOT}/scripts/lib/common.sh; . {ROOT}/scripts/lib/tiers.sh; ensure_id_range || die "$TIER_WHY"')
        flags += ["--userns=auto:size=70000"]
    if "runAsUser" in context:
        flags += ["--user", f"{context['runAsUser']}:{context['runAsGroup']}"]
    if context.get("allowPrivilegeEscalation") is False:
        flags += ["--security-opt", "no-new-privileges"]
    if context.get("procMount") == "Unmasked":
        flags += ["--security-opt", "unmask=ALL"]
    profile = known(context["seccompProfile"], "type", "localhostProfile")
    assert (profile["type"], profile.get("localhostProfile")) in (("Localhost", "caisson.json"), ("RuntimeDefault", None))
    file = ROOT / "image/seccomp.json" if profile["type"] == "Localhost" else runtime_default
    flags += ["--security-opt", f"seccomp={file}"]
    mounts = {m["name"]: m["mountPath"] for m in container.get("volumeMounts", [])}
    assert mounts.keys() == {v["name"] for v in spec.get("volumes", [])}
    for path in mounts.values():  # as an emptyDir with fsGroup is: the group may write, others may not
        flags += ["--mount", f"type=tmpfs,destination={path},tmpfs-mode=2770,chown"]
    return flags


def pods() -> dict:
    return {pod["metadata"]["name"]: pod for pod in yaml.safe_load_all((ROOT / "image/kubernetes.yaml").read_text())}


@pytest.mark.parametrize("which, tiers", [("compose", {"T2", "T3"}), ("caisson-full", {"T3"}), ("caisson-restricted", {"T1"})])
def test_a_deployment_serves_in_the_tier_that_its_file_names(engine, image, docker_default, which, tiers):
    if which == "compose":
        flags = of_compose(ROOT / "image/compose.yaml")
    else:
        if engine != "podman":
            pytest.skip("a pod's user namespace and unmasked /proc are given by flags of podman")
        # Its runtime's default, containerd's, permits no namespaces, like Docker's.
        flags = of_pod(pods()[which], docker_default)
    with with_flags(engine, image, f"caisson-deployment-{which}", flags) as served:
        served.eventually(served.ready)
        data = served.bash("pwd; cat /etc/shadow")
        assert data["stdout"] == "/home/gem\n" and data["exit_code"] != 0, data
        assert json.loads(served.exec("caisson", "probe", "--json").stdout)["tier"] in tiers
