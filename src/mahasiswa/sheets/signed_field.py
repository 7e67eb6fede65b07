"""A value that the browser carries in a field of a form, signed so that the service accepts only what it has made.

The signature proves that the service made the field. It does not tell who sent it. A value is JSON, compressed with bz2, as
URL-safe base64, which no browser alters.
"""

import base64
import bz2
import hashlib
import hmac
import json
from typing import Any, Literal

from mahasiswa import wording
from mahasiswa.sheets.sheet_errors import SheetError

MAX_CONFIRMED_BYTES = 8 << 20  # the form that a browser sends back, and the JSON in its field
# The part of MAX_CONFIRMED_BYTES that is left for the other fields of the form.
OTHER_FIELDS_BYTES = 64 << 10
# 10,000 rows get 2% longer than with 9, and are packed in 0.7 and unpacked in 0.3 of its time.
BZ2_LEVEL = 3
SIGNATURE_BYTES = 32

# The number changes with the shape of the value, so the next version refuses the fields of this one.
Purpose = Literal["import 9", "selection 4"]


def pack(value: object, purpose: Purpose, key: bytes) -> str:
    """The field of a value, signed with the key of the database. Raises SheetError if its form would be too large."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    packed = bz2.compress(data, BZ2_LEVEL)
    field = base64.urlsafe_b64encode(_signature(packed, purpose, key) + packed).decode()
    if max(len(data), len(field) + OTHER_FIELDS_BYTES) > MAX_CONFIRMED_BYTES:
        limit = wording.size(MAX_CONFIRMED_BYTES)
        raise SheetError(wording.CONFIRMATION_TOO_LARGE.format(limit=limit))
    return field


def unpack(field: str, purpose: Purpose, key: bytes) -> Any:  # noqa: ANN401 - JSON
    """The value of a field. Raises SheetError if the service has not made the field for this purpose."""
    try:
        signed = base64.b64decode(field.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:
        signed = b""
    signature, packed = signed[:SIGNATURE_BYTES], signed[SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(packed, purpose, key)):
        raise SheetError(wording.CONFIRMATION_DAMAGED)
    return json.loads(bz2.decompress(packed))


def _signature(packed: bytes, purpose: Purpose, key: bytes) -> bytes:
    digest = hashlib.sha256(packed).digest()
    return hmac.digest(key, purpose.encode() + digest, hashlib.sha256)
