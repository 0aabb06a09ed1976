"""The Kubernetes manifests of docs/ and templates/: valid, complete, and no component has more than it needs."""

import re
from typing import Any, Final

import dask.config
import kubernetes_validate
import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from generator.config.settings import variable
from tests.support.builds import ROOT, all_commands
from tests.support.pages import PAGES, PROGRAM

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


def container(component: str) -> Manifest:
    (found,) = PODS[component]["spec"]["containers"]
    return dict(found)


def variables(component: str) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container(component).get("env", [])}


# ── the schema ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_manifest_is_valid(name: str) -> None:
    assert invalid(MANIFESTS[name]) == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Service public-markets-scheduler", "spec.ports.0.targetPort"),
        ("Deployment public-markets-scheduler", "spec.template.spec.containers.0.readinessProbe.httpGet.path"),
        ("Deployment public-markets-worker", "spec.template.spec.containers.0.envFrom.0.secretRef"),
        ("NetworkPolicy public-markets-scheduler", "spec.ingress.0.from.0.podSelector.matchExpressions.0.operator"),
        ("PersistentVolumeClaim public-markets-output", "spec.accessModes"),
        ("CronJob public-markets", "spec.jobTemplate.spec.template.spec.volumes.0.configMap"),
        ("docs/scheduling.md CronJob", "spec.jobTemplate.spec.activeDeadlineSeconds"),
    ],
)
def test_a_misspelled_field_of_every_kind_is_found(name: str, path: str) -> None:
    assert {manifest["kind"] for manifest in MANIFESTS.values()} == {
        "CronJob", "Deployment", "NetworkPolicy", "PersistentVolumeClaim", "Service"
    }  # fmt: skip
    misspelled: Manifest = yaml.safe_load(yaml.safe_dump(MANIFESTS[name]))
    *above, field = path.split(".")
    place: Any = misspelled
    for step in above:
        place = place[int(step) if step.isdecimal() else step]
    place[f"{field}x"] = place.pop(field)
    assert len(invalid(misspelled)) == len(VERSIONS)


# ── the commands ──────────────────────────────────────────────────────────────────────────────────────────────────


def parsed(component: str) -> dict[str, Any]:
    """The options of the component's command. The program's own parser refuses those that it does not know."""
    program, name, *words = container(component)["command"]
    known: dict[str, Any] = (
        all_commands() if program == PROGRAM else {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    )
    return dict(known[name].make_context(name, words).params)


def test_every_component_runs_a_command_that_exists_in_one_image() -> None:
    assert {container(component)["image"] for component in PODS} == {"registry.example.com/public-markets:0.1"}
    scheduler, worker, job = (parsed(component) for component in ("scheduler", "worker", "coordinator"))
    assert (worker["nthreads"], worker["nanny"], worker["memory_limit"]) == (1, False, "1GiB")
    assert container("worker")["resources"]["limits"]["memory"] == "1Gi"
    assert job["overrides"] == ("output=/output/site",)
    assert (scheduler["dashboard"], worker["dashboard"]) == (False, False)


def test_the_components_find_each_other() -> None:
    service = CLUSTER["Service public-markets-scheduler"]
    (port,) = service["spec"]["ports"]
    address = f"tls://{service['metadata']['name']}:{port['port']}"
    assert {parsed("worker")["scheduler"], variables("coordinator")["PUBLIC_MARKETS_CLUSTER"]} == {address}
    ports = {
        component: {entry["name"]: entry["containerPort"] for entry in container(component)["ports"]}
        for component in PODS
        if component != "coordinator"
    }
    scheduler, worker = parsed("scheduler"), parsed("worker")
    assert ports["scheduler"] == {"tls": int(scheduler["port"]), "health": int(scheduler["dashboard_address"][1:])}
    assert ports["worker"] == {"tls": int(worker["worker_port"])}
    assert port["port"] == int(scheduler["port"])
    assert service["spec"]["selector"] == PODS["scheduler"]["metadata"]["labels"]


def test_every_volume_is_mounted_and_every_file_named_is_in_one() -> None:
    for template in PODS.values():
        (only,) = template["spec"]["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in only["volumeMounts"]}
        assert mounts.keys() == {volume["name"] for volume in template["spec"]["volumes"]}
        files = [
            value for value in [*only["command"], *(entry["value"] for entry in only["env"])] if value.startswith("/")
        ]
        assert all(any(file.startswith(f"{folder}/") for folder in mounts.values()) for file in files)


def test_our_variables_are_settings() -> None:
    named = {*re.findall(r"\bPUBLIC_MARKETS_[A-Z_]+\b", re.sub(r"\w+_PORT\b", "", FILE.read_text("utf-8")))}
    assert named == {variable("cluster"), variable("source.url")}


def test_the_dask_variables_are_settings_of_dask() -> None:
    """Dask ignores a variable that it does not know, and goes on without encryption."""
    for component, role in {"scheduler": "scheduler", "worker": "worker", "coordinator": "client"}.items():
        given = dask.config.collect_env({name: value for name, value in variables(component).items() if "DASK" in name})
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
    assert [entry["port"] for entry in rule["ports"]] == [container(protected)["ports"][0]["containerPort"]]
    return {
        protected: {component for component, own in labels.items() if all(own[key] in wanted[key] for key in wanted)}
    }


def test_only_the_coordinator_and_workers_reach_the_scheduler() -> None:
    assert admitted("public-markets-scheduler") == {"scheduler": {"coordinator", "worker"}}
    assert admitted("public-markets-worker") == {"worker": {"scheduler", "worker"}}


def test_no_component_knows_a_secret_that_it_does_not_need() -> None:
    given = {
        component: [entry["secretRef"]["name"] for entry in container(component).get("envFrom", [])]
        for component in PODS
    }
    assert given == {
        "scheduler": [],
        "worker": ["public-markets-source"],
        "coordinator": ["public-markets-source", "public-markets"],
    }
    mounted = {
        component: [
            volume["secret"]["secretName"] for volume in PODS[component]["spec"]["volumes"] if "secret" in volume
        ]
        for component in PODS
    }
    assert mounted == {
        component: [f"public-markets-{role}-tls"]
        for component, role in {"scheduler": "scheduler", "worker": "worker", "coordinator": "client"}.items()
    }


@pytest.mark.parametrize("component", ["scheduler", "worker", "coordinator"])
def test_every_pod_is_confined(component: str) -> None:
    spec = PODS[component]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container(component)["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
    }  # fmt: skip
    assert container(component)["resources"]["limits"].keys() == {"memory"}


def test_no_job_takes_the_variables_of_services_for_settings() -> None:
    jobs = [pod(manifest) for manifest in MANIFESTS.values() if manifest["kind"] in {"CronJob", "Deployment"}]
    assert len(jobs) == 4
    assert [template["spec"].get("enableServiceLinks") for template in jobs] == [False] * 4


def test_runs_of_the_job_never_overlap_and_keep_their_folder() -> None:
    spec = CLUSTER[f"CronJob {PROGRAM}"]["spec"]
    single = SHOWN["docs/scheduling.md CronJob"]["spec"]
    for field in ("schedule", "concurrencyPolicy", "startingDeadlineSeconds"):
        assert spec[field] == single[field]
    assert spec["concurrencyPolicy"] == "Forbid"
    job = spec["jobTemplate"]["spec"]
    assert job["activeDeadlineSeconds"] == single["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    (claim,) = [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in PODS["coordinator"]["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert f"PersistentVolumeClaim {claim}" in CLUSTER
