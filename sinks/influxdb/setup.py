"""Makes what the sink needs in InfluxDB: the bucket with its retention, and a token for that bucket and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sinks.influxdb.http import Target

DESCRIPTION: Final = "xpulse: read and write of bucket "


@dataclass(frozen=True, slots=True)
class Made:
    """`token` is shown once: InfluxDB 2.9 and later keep only its hash. `bucket_made` is False where it was there."""

    token: str
    bucket_made: bool
    retention_seconds: int


class SetupRefused(ValueError):
    """The server says no, or what is there would have to be changed in a way that deletes data."""


def setup(target: Target, admin_token: str, *, retention_seconds: int) -> Made:
    """Make the bucket (or lengthen its retention) and a new token for it.

    Raises SetupRefused where the organisation is missing, the admin token is refused, or the bucket keeps points longer than asked;
    ConnectionError where the server cannot be reached.
    """
    from influxdb_client import Authorization, BucketRetentionRules, Permission, PermissionResource
    from influxdb_client.rest import ApiException
    from urllib3.exceptions import HTTPError

    from sinks.influxdb.client import connect

    client = connect(replace(target, token=admin_token))
    try:
        organisations = client.organizations_api().find_organizations(org=target.org)
        if not organisations:
            raise SetupRefused(f"InfluxDB at {target.url} has no organisation {target.org!r}; make it, or change sinks.influxdb.org")
        org_id = organisations[0].id
        buckets = client.buckets_api()
        bucket = buckets.find_bucket_by_name(target.bucket)
        made = bucket is None
        if bucket is None:
            rule = BucketRetentionRules(type="expire", every_seconds=retention_seconds)
            bucket = buckets.create_bucket(bucket_name=target.bucket, org=org_id, retention_rules=[rule])
        elif (now := _retention_seconds(bucket.retention_rules)) != retention_seconds:
            if now == 0 or now > retention_seconds:
                raise SetupRefused(
                    f"bucket {target.bucket!r} keeps points {'for ever' if now == 0 else f'{now} s'}, {retention_seconds} s were asked: "
                    "that would delete data. Set sinks.influxdb.retention_days to what it has, or shorten it yourself"
                )
            bucket.retention_rules[0].every_seconds = retention_seconds
            bucket.retention_rules[0].shard_group_duration_seconds = None
            buckets.update_bucket(bucket)
        resource = PermissionResource(org_id=org_id, type="buckets", id=bucket.id)
        allowed = [Permission(action=action, resource=resource) for action in ("read", "write")]
        wanted = Authorization(org_id=org_id, description=DESCRIPTION + target.bucket, permissions=allowed)
        token = client.authorizations_api().create_authorization(authorization=wanted).token
    except ApiException as error:
        raise SetupRefused(
            f"InfluxDB at {target.url} answered {error.status} {error.reason}: is the admin token right, and is there an organisation "
            f"{target.org!r} (sinks.influxdb.org)?"
        ) from None
    except (HTTPError, OSError) as error:
        raise ConnectionError(f"InfluxDB at {target.url}: {error}") from None
    finally:
        client.close()
    return Made(token, made, retention_seconds)


def _retention_seconds(rules: list[object] | None) -> int:
    return int(getattr(rules[0], "every_seconds", 0) or 0) if rules else 0
