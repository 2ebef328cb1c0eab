"""The agent's endpoint: who on the network reaches it, and whether its token and certificate can be used."""

from __future__ import annotations

from collections.abc import Iterator

from xpulse.doctor import Diagnosis, Level
from xpulse.errors import UsageError
from xpulse.listener import Tls
from xpulse.node_doctor.where import Where
from xpulse.northbound.exposition.endpoint import exposed, token_of
from xpulse.northbound.exposition.settings import check_port
from xpulse.run.pull import address


def endpoint(where: Where) -> Iterator[Diagnosis]:
    """What northbound.exposition amounts to; nothing is listened on."""
    chosen = where.settings.northbound.exposition
    host, port = address(where.settings)
    try:
        check_port(port)
    except ValueError as error:
        yield Diagnosis("problem", "endpoint", str(error), "set northbound.exposition.port", "the agent does not start")
    try:
        token_of(chosen)
    except UsageError as error:
        yield Diagnosis("problem", "endpoint", str(error), "mend or unset it", "the agent does not start")
    if chosen.cert_file is not None and chosen.key_file is not None:
        try:
            Tls(chosen.cert_file, chosen.key_file).context()
        except OSError as error:
            text = f"northbound.exposition.cert_file {chosen.cert_file} with key_file {chosen.key_file}: {error}"
            yield Diagnosis(
                "problem", "endpoint", text, "a PEM certificate and the private key that belongs to it", "the agent does not start"
            )
    if why := exposed(chosen, host):
        level: Level = "problem" if chosen.token is None and chosen.token_file is None else "note"
        remedy = "set northbound.exposition.token_file, cert_file and key_file, or listen on 127.0.0.1"
        yield Diagnosis(level, "endpoint", f"{host}:{port} is reached by the network; {why}", remedy)
    else:
        yield Diagnosis("good", "endpoint", f"{host}:{port}: for this machine only, or with token and TLS")
