#!/usr/bin/env python3
"""Prints the power of a TP-Link Tapo or Kasa plug with KLAP, in watts: one line per interval.

docs/power-on-a-pi.md describes how the node meter reads these lines through an MQTT broker. If the plug gives no
power, the line says why. The meter refuses such a line and shows it. No power is printed twice.
"""

import argparse
import asyncio
import time
from pathlib import Path

from kasa import (
    AuthenticationError,
    Credentials,
    Device,
    DeviceConfig,
    DeviceConnectionParameters,
    DeviceEncryptionType,
    DeviceFamily,
    Module,
)

# The versions of the login that a family may have. Tapo has only the second.
FAMILIES = {
    "tapo": (DeviceFamily.SmartTapoPlug, [2]),
    "kasa": (DeviceFamily.IotSmartPlugSwitch, [2, 1]),
}
# Seconds before a refused password is tried again, if the file still has it.
REFUSED_PAUSE = 60


class NoPowerError(Exception):
    """Why the plug gives no power."""


class Plug:
    """A plug, and the session with it. python-kasa replaces a session that has ended."""

    def __init__(self, options):
        self.options = options
        self.device = None
        self.refused = None

    async def watts(self):
        """The plug's power now."""
        if self.device is None:
            self.device = await self.connect()
        energy = self.device.modules.get(Module.Energy)
        if energy is None:
            raise NoPowerError(f"a {self.device.model} does not measure power")
        watts = (await energy.get_status()).power
        if watts is None:
            raise NoPowerError("the plug's answer has no power")
        return watts

    async def connect(self):
        options = self.options
        password = options.password_file.read_text().strip()
        if self.refused and password == self.refused[0] and time.monotonic() < self.refused[1]:
            raise NoPowerError("the plug refuses this username or password")
        family, logins = FAMILIES[options.family]
        for login in logins:
            try:
                return await Device.connect(
                    config=DeviceConfig(
                        host=options.host,
                        port_override=options.port,
                        timeout=options.timeout,
                        credentials=Credentials(options.username, password),
                        connection_type=DeviceConnectionParameters(
                            family, DeviceEncryptionType.Klap, login_version=login
                        ),
                    )
                )
            except AuthenticationError:
                continue
        self.refused = password, time.monotonic() + REFUSED_PAUSE
        raise NoPowerError("the plug refuses this username or password")


async def line(plug):
    """The next line. It never looks like a number if there is no power."""
    try:
        return f"{await plug.watts():.3f}"
    except NoPowerError as reason:
        return f"no power: {reason}"
    # A plug's firmware may answer anything. The next answer may be right.
    except Exception as error:
        text = " ".join(str(error).split())
        return f"no power: {type(error).__name__}: {text}"


async def run(options):
    plug = Plug(options)
    question = None
    while True:
        began = time.monotonic()
        if question is None:
            question, asked = asyncio.create_task(line(plug)), began
        await asyncio.wait({question}, timeout=options.interval)
        if question.done():
            print(question.result(), flush=True)
            question = None
        else:
            seconds = time.monotonic() - asked
            print(f"no power: the plug has not answered for {seconds:.0f} s", flush=True)
        await asyncio.sleep(max(0.0, began + options.interval - time.monotonic()))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("host", help="name or address of the plug")
    parser.add_argument("--port", type=int, default=80, help="default: %(default)s")
    parser.add_argument(
        "--family", choices=FAMILIES, default="tapo", help="default: %(default)s"
    )
    parser.add_argument("--username", required=True, help="e-mail address of the TP-Link account")
    parser.add_argument(
        "--password-file", type=Path, required=True, help="file with the account's password"
    )
    parser.add_argument(
        "--interval", type=float, default=1.0, help="seconds between two lines; default: %(default)s"
    )
    parser.add_argument(
        "--timeout", type=int, default=2, help="seconds for one request; default: %(default)s"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        asyncio.run(run(arguments()))
    except (BrokenPipeError, KeyboardInterrupt):
        raise SystemExit(1) from None
