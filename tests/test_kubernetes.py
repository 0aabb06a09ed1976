"""The Kubernetes manifests of docs/ and templates/: valid, complete, and no component has more than it needs."""

import re
from typing import Any, Final

import dask.config
import kubernetes_validate
import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from generator import __version__
from generator.config.settings import variable
from tests.support.project import ROOT
from tests.support.readers.pages import PAGES, PROGRAM
from tests.support.sites.builds import all_commands

Manifest = dict[str, Any]
FILE: Final = ROOT / "templates" / "kubernetes" / "cluster.yaml"
CLUSTER: Final[dict[str, Manifest]] = {
    f"{manifest['kind']} {manifest['metadata']['name']}": manifest
    for manifest in yaml.safe_load_all(FILE.read_text("utf-8"))
}
SHOWN: Final[dict[str, Manifest]] = {
    f"{page} {manifest['kind']}": manifest
    for page, text in PAGES.items()
    for block in re.findall(r"^```yaml\n(apiVersion:.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for manifest in yaml.safe_load_all(block)
}
MANIFESTS: Final = CLUSTER | SHOWN
#: The oldest and the newest version of Kubernetes that the validator knows.
VERSIONS: Final = ("1.25", "1.37")


def invalid(manifest: Manifest) -> list[str]:
    """What a version of Kubernetes refuses in the manifest; fields that it does not know are among it."""
    faults = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            faults.append(f"{version}: {error.message}")
    return faults


def pod(manifest: Manifest) -> Manifest:
    """The template of the manifest's pods."""
    spec = manifest["spec"]
    return dict((spec["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else spec)["template"])


PODS: Final = {
    pod(manifest)["metadata"]["labels"]["app.kubernetes.io/component"]: pod(manifest)
    for manifest in CLUSTER.values()
    if manifest["kind"] in {"CronJob", "Deployment"}
}


def containers(component: str) -> list[Manifest]:
    """The containers of a component's pod, in the order in which they run."""
    spec = PODS[component]["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


CONTAINERS: Final[dict[str, Manifest]] = {found["name"]: found for component in PODS for found in containers(component)}


def variables(name: str) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in CONTAINERS[name].get("env", [])}


# ── the schema ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_manifest_is_valid(name: str) -> None:
    assert invalid(MANIFESTS[name]) == []


# ── the commands ──────────────────────────────────────────────────────────────────────────────────────────────────


def parsed(name: str) -> dict[str, Any]:
    """The options of a container's command. The program's own parser refuses those that it does not know."""
    program, name, *words = CONTAINERS[name]["command"]
    known: dict[str, Any] = (
        all_commands() if program == PROGRAM else {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    )
    return dict(known[name].make_context(name, words).params)


def test_every_container_runs_a_command_that_exists_in_one_image() -> None:
    assert {found["image"] for found in CONTAINERS.values()} == {f"registry.example.com/public-markets:{__version__}"}
    scheduler, worker, build, publish = map(parsed, ("scheduler", "worker", "build", "publish"))
    assert (worker["nthreads"], worker["nanny"], worker["memory_limit"]) == (1, False, "1GiB")
    assert CONTAINERS["worker"]["resources"]["limits"]["memory"] == "1Gi"
    assert build["overrides"] == publish["overrides"] == ("output=/output/site",)
    assert (scheduler["dashboard"], worker["dashboard"]) == (False, False)


def test_the_components_find_each_other() -> None:
    service = CLUSTER["Service public-markets-scheduler"]
    (port,) = service["spec"]["ports"]
    address = f"tls://{service['metadata']['name']}:{port['port']}"
    assert {parsed("worker")["scheduler"], variables("build")["PUBLIC_MARKETS_CLUSTER"]} == {address}
    ports = {
        name: {entry["name"]: entry["containerPort"] for entry in found["ports"]}
        for name, found in CONTAINERS.items()
        if "ports" in found
    }
    scheduler, worker = parsed("scheduler"), parsed("worker")
    assert ports["scheduler"] == {"tls": int(scheduler["port"]), "health": int(scheduler["dashboard_address"][1:])}
    assert ports["worker"] == {"tls": int(worker["worker_port"])}
    assert port["port"] == int(scheduler["port"])
    assert service["spec"]["selector"] == PODS["scheduler"]["metadata"]["labels"]


def test_every_volume_is_mounted_and_every_file_named_is_in_one() -> None:
    for component, template in PODS.items():
        mounted = set[str]()
        for only in containers(component):
            mounts = {mount["name"]: mount["mountPath"] for mount in only["volumeMounts"]}
            mounted |= mounts.keys()
            words = [*only["command"], *(entry["value"] for entry in only["env"])]
            files = [value for value in words if value.startswith("/")]
            assert all(any(file.startswith(f"{folder}/") for folder in mounts.values()) for file in files)
        assert mounted == {volume["name"] for volume in template["spec"]["volumes"]}


def test_the_dask_variables_are_settings_of_dask() -> None:
    """Dask ignores a variable that it does not know, and goes on without encryption."""
    for container, role in {"scheduler": "scheduler", "worker": "worker", "build": "client"}.items():
        given = dask.config.collect_env({name: value for name, value in variables(container).items() if "DASK" in name})
        (comm,) = [value["comm"] for value in given.values()]
        assert comm["require_encryption"] is True
        assert comm["tls"] == {"ca_file": "/tls/ca.crt", role: {"cert": "/tls/tls.crt", "key": "/tls/tls.key"}}
        known = dask.config.get("distributed.comm")
        assert dask.config.canonical_name("require_encryption", known) in known
        assert dask.config.canonical_name("ca_file", known["tls"]) in known["tls"]
        assert known["tls"][role].keys() == {"cert", "key"}


# ── what each component may do ────────────────────────────────────────────────────────────────────────────────────


def admitted(policy: str) -> dict[str, set[str]]:
    """The components that a policy lets in, by the component that it protects."""
    spec = CLUSTER[f"NetworkPolicy {policy}"]["spec"]
    (rule,) = spec["ingress"]
    (source,) = rule["from"]
    wanted = {expression["key"]: {*expression["values"]} for expression in source["podSelector"]["matchExpressions"]}
    labels = {component: template["metadata"]["labels"] for component, template in PODS.items()}
    (protected,) = [component for component, own in labels.items() if own == spec["podSelector"]["matchLabels"]]
    assert [entry["port"] for entry in rule["ports"]] == [CONTAINERS[protected]["ports"][0]["containerPort"]]
    return {
        protected: {component for component, own in labels.items() if all(own[key] in wanted[key] for key in wanted)}
    }


def test_only_the_coordinator_and_workers_reach_the_scheduler() -> None:
    assert admitted("public-markets-scheduler") == {"scheduler": {"coordinator", "worker"}}
    assert admitted("public-markets-worker") == {"worker": {"scheduler", "worker"}}


def secrets(component: str, container: Manifest) -> list[str]:
    """The secrets that a container knows, by its variables and its volumes."""
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    volumes = [volume for volume in PODS[component]["spec"]["volumes"] if volume["name"] in mounted]
    given = [entry["secretRef"]["name"] for entry in container.get("envFrom", [])]
    return given + [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]


def test_no_container_knows_a_secret_that_it_does_not_need() -> None:
    known = {found["name"]: secrets(component, found) for component in PODS for found in containers(component)}
    assert known == {
        "scheduler": ["public-markets-scheduler-tls"],
        "worker": ["public-markets-source", "public-markets-worker-tls"],
        "build": ["public-markets-source", "public-markets-client-tls"],
        "publish": ["public-markets"],
    }


def test_the_container_with_the_keys_of_the_store_runs_after_the_one_that_talks_to_the_cluster() -> None:
    spec = PODS["coordinator"]["spec"]
    assert [found["name"] for found in spec["initContainers"]] == ["build"]
    assert [found["name"] for found in spec["containers"]] == ["publish"]
    assert "shareProcessNamespace" not in spec
    assert variables("publish").keys() == {variable("source.url")}
    # What one writes for the other is the output folder, not its temporary files.
    build, publish = ({mount["name"] for mount in found["volumeMounts"]} for found in containers("coordinator"))
    assert build & publish == {"config", "output"}


@pytest.mark.parametrize("component", ["scheduler", "worker", "coordinator"])
def test_every_pod_is_confined(component: str) -> None:
    spec = PODS[component]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    for found in containers(component):
        assert found["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
        }  # fmt: skip
        assert found["resources"]["limits"].keys() == {"memory"}


def test_no_job_takes_the_variables_of_services_for_settings() -> None:
    jobs = [pod(manifest) for manifest in MANIFESTS.values() if manifest["kind"] in {"CronJob", "Deployment"}]
    assert len(jobs) == 4
    assert [template["spec"].get("enableServiceLinks") for template in jobs] == [False] * 4
