# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with certificates: gRPC would try again until the time is over, and not say why."""

import socket
import ssl
from pathlib import Path

from switchgnn.controller.errors import ControllerError, SwitchUnreachableError
from switchgnn.controller.p4runtime.address import socket_path

_SECONDS = 2.0
# What a client of HTTP/2 begins with, and settings without any (RFC 9113, 3.4): a server that takes
# the client's certificate answers, and one that does not says so now.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


def check_tls_files(root: Path | None, certificate: Path | None, key: Path | None) -> None:
    """Check that files are what they are given for.

    Args:
        root: certificates of authorities (PEM), or None for the system's.
        certificate: one's own, or None; it is not looked at without its key.
        key: the private key of ``certificate``.

    Raises:
        ControllerError: one cannot be read, is something else, or the key is not the certificate's.
    """
    _context(root, certificate, key)


def check_handshake(
    address: str, root: Path | None, certificate: Path | None, key: Path | None
) -> None:
    """Check that a switch and its controller believe each other; return where nobody answers.

    Args:
        address: where the switch serves P4Runtime.
        root: certificates of authorities (PEM), or None for the system's.
        certificate: the controller's own, or None.
        key: the private key of ``certificate``.

    Raises:
        ControllerError: the files are not in order.
        SwitchUnreachableError: one does not believe the other.
    """
    context = _context(root, certificate, key)
    if socket_path(address) is not None:
        return
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        with (
            socket.create_connection((host, int(port)), _SECONDS) as sock,
            context.wrap_socket(sock, server_hostname=host) as wrapped,
        ):
            taken = _is_taken(wrapped)
    except ssl.SSLCertVerificationError as error:
        message = error.verify_message.rstrip(".")
        raise SwitchUnreachableError(
            f"The certificate of the switch at {address} is not believed: {message}. Give the "
            "switch one for this address, of the authority that the controller trusts."
        ) from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        # It ends, or has not begun yet.
        return
    except ssl.SSLError as error:
        raise SwitchUnreachableError(
            f"What listens at {address} does not speak TLS as a switch does: {_reason(error)}. "
            "Give the address of its P4Runtime server, or leave out the certificates."
        ) from error
    except OSError:
        return
    if not taken:
        own = "no certificate" if certificate is None else f"the certificate {certificate}"
        raise SwitchUnreachableError(
            f"The switch at {address} ends the connection: it does not believe a controller with "
            f"{own}. Give one of the authority that the switch trusts, which has not expired."
        )


def _is_taken(wrapped: ssl.SSLSocket) -> bool:
    """Tell whether a server goes on when it has seen the client's certificate, or has none yet."""
    try:
        wrapped.sendall(_GREETING)
        return wrapped.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def _context(root: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # How strong keys have to be is for gRPC to say.
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    try:
        if root is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(root)
    except ssl.SSLError as error:
        raise ControllerError(
            f"The TLS file {root} holds no certificate of an authority ({_reason(error)}): give "
            "the path of a PEM file."
        ) from error
    except OSError as error:
        raise _unreadable(root, error) from error
    if certificate is not None and key is not None:
        try:
            # A key with a password would be asked for at the terminal.
            context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            raise ControllerError(
                f"The TLS files {certificate} and {key} are not a certificate and its private key "
                f"({_reason(error)}): give the paths of PEM files that belong together."
            ) from error
        except OSError as error:
            missing = certificate if not certificate.exists() else key
            raise _unreadable(missing, error) from error
    return context


def _unreadable(path: Path | None, error: OSError) -> ControllerError:
    return ControllerError(
        f"Cannot read the TLS file {path}: {error.strerror}: give the path of a PEM file."
    )


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "something else than expected").lower().replace("_", " ")
