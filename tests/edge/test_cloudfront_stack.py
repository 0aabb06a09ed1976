"""The CloudFormation stack of the CloudFront edge: linted, and read for what it opens, limits and names."""

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from generator.config.downloads import Dumps, PublishedHistory
from generator.config.questions import Questions
from generator.config.settings import Config, Publish, RateLimit
from generator.edge import cloudfront, responses, router
from generator.tree.layouts import LAYOUTS
from tests.support.campaigns import sample
from tests.support.edges.cloudfront import AWKWARD, CHUNKED, EXTENDED, IN_BUCKET, PLAIN, rendered
from tests.support.programs import require
from tests.support.sites.builds import VARIANTS


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short functions, as `{"Ref": …}` and so on."""


_Loader.add_multi_constructor("!", lambda loader, tag, node: {tag: _plain(loader, node)})


def _plain(loader: Any, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


def stack(config: Config) -> Any:
    return yaml.load(rendered(config)["template.yaml"], _Loader)  # noqa: S506 - a SafeLoader


def properties(config: Config, name: str) -> Any:
    return stack(config)["Resources"][name]["Properties"]


#: Every variant, layout and kind of search, with plain settings and with awkward ones, and with all there is to serve.
EVERY = [
    pytest.param(
        base.model_copy(
            update={
                "variant": variant,
                "layout": layout,
                "search": search,
                "dumps": dumps,
                "questions": questions,
                "history": PublishedHistory(public=dumps.fills),
            }
        ),
        id=f"{name} {variant} {layout} {search} {dumps.fills} {questions.enabled} {questions.lists}",
    )
    for (name, base), variant, layout, search, dumps, questions in product(
        (("plain", PLAIN), ("awkward", AWKWARD)),
        VARIANTS,
        LAYOUTS,
        ("off", "title+description"),
        (Dumps(parquet=True), Dumps(parquet=True, fills=True)),
        (Questions(), Questions(enabled=True), Questions(enabled=True, lists=False)),
    )
]


@pytest.mark.parametrize("config", EVERY)
def test_the_files_fit(config: Config) -> None:
    files = rendered(config)
    assert len(files["function.js"].encode()) <= 10 * 1024  # quotas on CloudFront Functions
    # A template that need not lie in S3 has 51,200 bytes at most; the rest is room for settings that are longer.
    assert len(files["template.yaml"].encode()) <= 51_200 - 1_000


def test_settings_that_no_function_can_hold_are_refused_when_the_stack_is_deployed() -> None:
    config = Config(base_url=f"https://api.example.com/{'a' * 2000}", variant="extended")
    size = len(rendered(config)["function.js"].encode())
    assert size > 10 * 1024
    assert stack(config)["Rules"]["FunctionFits"]["Assertions"] == [
        {
            "Assert": {"Equals": [f"{size} bytes", "10240 bytes at most"]},
            "AssertDescription": f"CloudFront takes functions of 10240 bytes at most, and with these settings ours has "
            f"{size}. Shorten the path of base_url or the prefix of publish.target, and build again.",
        }
    ]
    assert stack(EXTENDED)["Rules"].keys() == {"OnlyInUsEast1"}


SEARCHED = AWKWARD.model_copy(update={"variant": "extended", "layout": "chunks", "search": "title"})


@pytest.mark.campaign(short=0)
def test_cfn_lint_has_nothing_to_say(tmp_path: Path) -> None:
    configs = [PLAIN, IN_BUCKET, AWKWARD, AWKWARD.model_copy(update={"layout": "chunks"}), SEARCHED]
    program = require("cfn-lint", Path(sys.executable).parent, reason="the stack's template is not checked")
    for number, config in enumerate(sample(configs, 1)):
        (tmp_path / f"template-{number}.yaml").write_text(rendered(config)["template.yaml"], "utf-8")
    command: list[str | Path] = [program, "--regions", "us-east-1", "--", *tmp_path.iterdir()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("config", [PLAIN, IN_BUCKET, AWKWARD, SEARCHED])
def test_the_template_holds_the_functions_as_they_are(config: Config) -> None:
    files = rendered(config)
    if config.layout == "chunks":
        assert properties(config, "OriginRequest")["Code"]["ZipFile"] == files["origin-request.js"]
    assert properties(config, "Router")["FunctionCode"] == files["function.js"]
    assert properties(config, "OriginResponse")["Code"]["ZipFile"] == files["origin-response.js"]


def test_changed_code_makes_a_new_version() -> None:
    versions = [[name for name in stack(config)["Resources"] if "Version" in name] for config in (PLAIN, IN_BUCKET)]
    assert [len(names) for names in versions] == [1, 1]
    assert versions[0] != versions[1]
    distribution = properties(PLAIN, "Distribution")["DistributionConfig"]
    (association,) = distribution["DefaultCacheBehavior"]["LambdaFunctionAssociations"]
    assert association == {"EventType": "origin-response", "LambdaFunctionARN": {"Ref": versions[0][0]}}


def test_in_chunks_a_function_before_the_bucket_may_read_lists_and_when_they_were_published() -> None:
    config = CHUNKED.model_copy(update={"publish": Publish(target="s3://markets-example/a*b")})
    (policy,) = properties(config, "OriginRequestRole")["Policies"]
    allowed, listed = policy["PolicyDocument"]["Statement"]
    assert (allowed["Effect"], allowed["Action"]) == ("Allow", "s3:GetObject")
    opened = ("/a${*}b/v1/public/markets/lists/*", "/a${*}b/v1/build.json")
    assert allowed["Resource"] == [{"Join": ["", [{"GetAtt": "Bucket.Arn"}, path]]} for path in opened]
    assert (listed["Action"], listed["Resource"]) == ("s3:ListBucket", {"GetAtt": "Bucket.Arn"})
    behavior = properties(config, "Distribution")["DistributionConfig"]["DefaultCacheBehavior"]
    (version,) = [name for name in stack(config)["Resources"] if name.startswith("OriginRequestVersion")]
    assert {"EventType": "origin-request", "LambdaFunctionARN": {"Ref": version}} in behavior[
        "LambdaFunctionAssociations"
    ]
    assert "OriginRequest" not in stack(PLAIN)["Resources"]


@pytest.mark.parametrize(
    ("requests", "seconds", "limit", "window"),
    [
        (300, 60, 300, 60),
        (300, 120, 300, 120),
        (1000, 300, 1000, 300),
        (1000, 600, 1000, 600),
        (5, 1, 300, 60),  # the same rate in the next window
        (100, 90, 134, 120),  # rounded up: nobody polite is refused
        (100, 301, 200, 600),
        (3600, 3600, 600, 600),  # the longest
        (1, 60, 10, 60),  # the least that WAF can count
        (10**12, 60, 2_000_000_000, 60),
    ],
)
def test_the_rate_limit_in_wafs_terms(requests: int, seconds: int, limit: int, window: int) -> None:
    assert cloudfront.waf_limit(requests, seconds) == (limit, window)


LIMITED: Final = {"rate_limit": RateLimit.model_validate({"requests": 7, "searches": 40, "window": 90})}


def test_the_firewall_answers_as_the_contract_says() -> None:
    firewall = properties(SEARCHED.model_copy(update=LIMITED), "Firewall")
    assert firewall["Scope"] == "CLOUDFRONT"
    assert len(firewall["Rules"]) == 2
    for rule in firewall["Rules"]:
        response = rule["Action"]["Block"]["CustomResponse"]
        body = firewall["CustomResponseBodies"][response["CustomResponseBodyKey"]]
        assert body == {"ContentType": "APPLICATION_JSON", "Content": responses.error_bodies()[429]}
        assert response["ResponseCode"] == 429
        headers = {header["Name"]: header["Value"] for header in response["ResponseHeaders"]}
        assert headers == {"cache-control": "no-store", "retry-after": "120", **responses.COMMON}


def test_the_firewall_counts_requests_and_where_there_is_search_searches() -> None:
    counted = {"AggregateKeyType": "IP", "EvaluationWindowSec": 120}
    for config in (SEARCHED, CHUNKED, EXTENDED, SEARCHED.model_copy(update={"search": "off"})):
        rules = properties(config.model_copy(update=LIMITED), "Firewall")["Rules"]
        assert [rule["Priority"] for rule in rules] == [*range(len(rules))]
        of_all, *of_searches = [rule["Statement"]["RateBasedStatement"] for rule in rules]
        assert of_all == {**counted, "Limit": 10}
        assert len(of_searches) == (config is SEARCHED)
        for found in of_searches:
            scope = found.pop("ScopeDownStatement")["RegexMatchStatement"]
            assert found == {**counted, "Limit": 54}
            assert scope == {
                "FieldToMatch": {"QueryString": {}},
                "RegexString": router.QUERY_OF_SEARCH,
                "TextTransformations": [{"Priority": 0, "Type": "NONE"}],
            }


def test_the_bucket_shows_the_distribution_what_is_published_and_nothing_else() -> None:
    for config, prefix in ((PLAIN, ""), (IN_BUCKET, "read api/v1/")):
        allowed, listed, denied = properties(config, "BucketPolicy")["PolicyDocument"]["Statement"]
        assert (allowed["Effect"], allowed["Action"]) == ("Allow", "s3:GetObject")
        assert allowed["Resource"] == {"Join": ["", [{"GetAtt": "Bucket.Arn"}, f"/{prefix}v1/*"]]}
        # Without it a missing object is a 403, like any refusal.
        assert (listed["Effect"], listed["Action"], listed["Resource"]) == (
            *("Allow", "s3:ListBucket"),
            {"GetAtt": "Bucket.Arn"},
        )
        for statement in (allowed, listed):
            assert statement["Condition"]["StringEquals"].keys() == {"AWS:SourceArn"}
        assert denied["Effect"] == "Deny"
    bucket = properties(PLAIN, "Bucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert "VersioningConfiguration" not in bucket


def test_a_prefix_opens_no_more_than_itself_in_a_policy() -> None:
    config = Config(publish=Publish(target="s3://markets-example/a*b?c${aws:username}"))
    allowed = properties(config, "BucketPolicy")["PolicyDocument"]["Statement"][0]
    assert allowed["Resource"]["Join"][1][1] == "/a${*}b${?}c${$}{aws:username}/v1/*"


def test_the_distribution() -> None:
    config = properties(IN_BUCKET, "Distribution")["DistributionConfig"]
    behavior = config["DefaultCacheBehavior"]
    assert (config["HttpVersion"], config["IPV6Enabled"], behavior["Compress"]) == ("http2and3", True, True)
    # All seven that CloudFront knows, or it would answer 403 before the router can answer 405.
    assert len(behavior["AllowedMethods"]) == 7
    assert behavior["CachedMethods"] == ["GET", "HEAD"]
    cached = properties(IN_BUCKET, "CachePolicy")["CachePolicyConfig"]
    assert cached["ParametersInCacheKeyAndForwardedToOrigin"]["QueryStringsConfig"] == {"QueryStringBehavior": "none"}
    assert (cached["MinTTL"], cached["MaxTTL"]) == (0, 31536000)


def test_what_cloudfront_answers_by_itself_is_the_contracts_json(demo_output: Path) -> None:
    pages = properties(PLAIN, "Distribution")["DistributionConfig"]["CustomErrorResponses"]
    answers = {page["ErrorCode"]: page.get("ResponseCode") for page in pages}
    # No page for 400 and 404: it would replace what the origin-response function answers.
    unchanged, refused = dict.fromkeys((400, 404)), {403: 400, 414: 400, 416: 416}
    assert answers == {**unchanged, **refused, 405: 405, **dict.fromkeys((500, 501, 502, 503, 504), 503)}
    for page in pages:
        if page["ErrorCode"] not in unchanged:
            body = (demo_output / page["ResponsePagePath"].removeprefix("/")).read_bytes()
            assert body == responses.error_bodies()[page["ResponseCode"]].encode()
    pages = properties(AWKWARD, "Distribution")["DistributionConfig"]["CustomErrorResponses"]
    assert all(page["ResponsePagePath"].startswith("/it%27s%20%22%24") for page in pages if "ResponseCode" in page)


def test_headers_that_the_objects_lack() -> None:
    policy = properties(PLAIN, "ResponseHeadersPolicy")["ResponseHeadersPolicyConfig"]
    cors = policy["CorsConfig"]
    assert cors["AccessControlAllowOrigins"]["Items"] == ["*"]
    exposed = {"ETag", "Link", "Retry-After", "X-As-Of", "Accept-Ranges", "Content-Length", "Content-Range"}
    assert set(cors["AccessControlExposeHeaders"]["Items"]) == exposed
    assert cors["AccessControlAllowMethods"]["Items"] == ["GET", "HEAD", "OPTIONS"]
    tls = {"AccessControlMaxAgeSec": 31_536_000, "IncludeSubdomains": False, "Override": True}
    assert policy["SecurityHeadersConfig"] == {"ContentTypeOptions": {"Override": True}, "StrictTransportSecurity": tls}


def test_the_outputs_are_what_publish_needs() -> None:
    named = ["BucketName", "DistributionId", "DistributionDomainName", "PublisherPolicyArn", "PublisherRoleArn"]
    assert list(stack(PLAIN)["Outputs"]) == named
