"""A stand-in for a TP-Link plug: it speaks KLAP (both versions of the login) and the requests for power.

Written after the description of the protocol in python-kasa. It checks everything that a client sends.
"""

import hashlib
import hmac
import http.server
import json
import os
import struct
import threading
import urllib.parse

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def authentication(login, username, password):
    digest = hashlib.sha1 if login == 2 else hashlib.md5
    both = digest(username.encode()).digest() + digest(password.encode()).digest()
    return sha256(both) if login == 2 else hashlib.md5(both).digest()


class Session:
    """The keys that both sides derive from the seeds."""

    def __init__(self, local, remote, auth):
        self.seeds = local, remote, auth
        self.cookie = os.urandom(16).hex().upper()
        self.is_confirmed = False
        vector = sha256(b"iv", *self.seeds)
        self.key = sha256(b"lsk", *self.seeds)[:16]
        self.signature = sha256(b"ldk", *self.seeds)[:28]
        self.vector = vector[:12]
        self.number = struct.unpack(">i", vector[28:])[0]

    def cipher(self, number):
        return Cipher(algorithms.AES(self.key), modes.CBC(self.vector + struct.pack(">i", number)))

    def signed(self, number, secret):
        return sha256(self.signature, struct.pack(">i", number), secret)

    def read(self, number, body):
        """The request, or None if it is not the next one or not the client's."""
        if number != self.number + 1:
            return None
        self.number = number
        signature, secret = body[:32], body[32:]
        if not hmac.compare_digest(signature, self.signed(number, secret)):
            return None
        decryptor = self.cipher(number).decryptor()
        padded = decryptor.update(secret) + decryptor.finalize()
        unpadder = padding.PKCS7(128).unpadder()
        return json.loads(unpadder.update(padded) + unpadder.finalize())

    def write(self, number, answer):
        padder = padding.PKCS7(128).padder()
        padded = padder.update(json.dumps(answer).encode()) + padder.finalize()
        encryptor = self.cipher(number).encryptor()
        secret = encryptor.update(padded) + encryptor.finalize()
        return self.signed(number, secret) + secret


class Plug:
    """A plug on the loopback interface. `watts` is its power; None: it does not answer."""

    def __init__(self, family="tapo", login=2, username="user@example.org", password="Secret 1"):
        self.family, self.login = family, login
        self.username, self.password = username, password
        self.watts = 4.321
        self.handshakes = 0
        self.session = None
        self.measures = True
        self.gone = threading.Event()
        plug = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if plug.watts is None:
                    plug.gone.wait(30)
                    self.close_connection = True
                    return
                status, answer, cookie = plug.answer(self.path, self.headers.get("Cookie", ""), body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                if cookie:
                    self.send_header("Set-Cookie", f"TP_SESSIONID={cookie};TIMEOUT=86400")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.gone.set()
        self.server.shutdown()
        self.server.server_close()

    def end_session(self):
        self.session = None

    def answer(self, path, cookie, body):
        """Status, body and session of the answer."""
        url = urllib.parse.urlsplit(path)
        auth = authentication(self.login, self.username, self.password)
        is_version_2 = self.family == "tapo" or self.login == 2
        if url.path == "/app/handshake1":
            remote = os.urandom(16)
            self.session = Session(body, remote, auth)
            proof = sha256(body, remote, auth) if is_version_2 else sha256(body, auth)
            return 200, remote + proof, self.session.cookie
        session = self.session
        if session is None or f"TP_SESSIONID={session.cookie}" not in cookie:
            return 403, b"", None
        local, remote, _ = session.seeds
        if url.path == "/app/handshake2":
            proof = sha256(remote, local, auth) if is_version_2 else sha256(remote, auth)
            if not hmac.compare_digest(body, proof):
                return 403, b"", None
            self.handshakes += 1
            session.is_confirmed = True
            return 200, b"", None
        number = int(urllib.parse.parse_qs(url.query)["seq"][0])
        request = session.read(number, body) if session.is_confirmed else None
        if url.path != "/app/request" or request is None:
            return 403, b"", None
        answer = self.tapo(request) if self.family == "tapo" else self.kasa(request)
        return 200, session.write(number, answer), None

    def tapo(self, request):
        method = request["method"]
        if method == "multipleRequest":
            answers = [{"method": it["method"], **self.tapo(it)} for it in request["params"]["requests"]]
            return {"result": {"responses": answers}, "error_code": 0}
        components = ["device", *(["energy_monitoring"] if self.measures else [])]
        results = {
            "component_nego": {"component_list": [{"id": it, "ver_code": 1} for it in components]},
            "get_device_info": {
                "device_id": "0" * 40,
                "device_on": True,
                "fw_ver": "1.4.0 Build 250101 Rel.000000",
                "hw_ver": "1.0",
                "mac": "00-00-00-00-00-00",
                "model": "P110",
                "nickname": "",
                "oem_id": "0" * 32,
                "region": "Europe/Berlin",
                "specs": "EU",
                "type": "SMART.TAPOPLUG",
            },
            "get_connect_cloud_state": {"status": 0},
            "get_device_time": {"region": "Europe/Berlin", "time_diff": 60, "timestamp": 1_700_000_000},
            "get_energy_usage": {"current_power": round(1000 * self.watts), "today_energy": 12},
        }
        if method not in results:
            return {"error_code": -1001}
        return {"result": results[method], "error_code": 0}

    def kasa(self, request):
        results = {
            ("system", "get_sysinfo"): {
                "active_mode": "none",
                "alias": "",
                "deviceId": "0" * 40,
                "dev_name": "Smart Wi-Fi Plug Mini",
                "feature": "TIM:ENE",
                "hwId": "0" * 32,
                "hw_ver": "1.0",
                "mac": "00:00:00:00:00:00",
                "mic_type": "IOT.SMARTPLUGSWITCH",
                "model": "KP115(EU)",
                "oemId": "0" * 32,
                "on_time": 9,
                "relay_state": 1,
                "rssi": -50,
                "sw_ver": "1.0.16 Build 210205 Rel.163735",
            },
            ("emeter", "get_realtime"): {
                "current_ma": 35,
                "power_mw": round(1000 * self.watts),
                "total_wh": 12,
                "voltage_mv": 230_000,
            },
            ("time", "get_time"): {"year": 2026, "month": 1, "mday": 1, "hour": 0, "min": 0, "sec": 0},
            ("time", "get_timezone"): {"index": 39},
            ("emeter", "get_monthstat"): {"month_list": []},
            ("emeter", "get_daystat"): {"day_list": []},
        }
        unknown = {"err_code": -2, "err_msg": "member not support"}
        return {
            module: {
                method: {**results[module, method], "err_code": 0}
                if (module, method) in results
                else unknown
                for method in methods
            }
            for module, methods in request.items()
        }
