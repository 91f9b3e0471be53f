"""Writes the descriptors of google/firestore/v1, under their canonical names, to one file, and to
another the same for Swift.

The Python package google-cloud-firestore holds them in a form of its own: one file a module, a
field named after a Python keyword with an underscore behind it. This puts the names right, leaves
out what the module does not need, and adds the member of Write that client libraries send although
the published definition lacks it.
"""

import base64
import sys
import textwrap

from google.cloud.firestore_v1.types import firestore
from google.protobuf import descriptor_pb2

# Pipelines belong to another edition of the database; Value's members for them stay, to be refused.
LEFT_OUT_FILES = {"pipeline.proto", "explain_stats.proto"}
LEFT_OUT_MESSAGES = {"ExecutePipelineRequest", "ExecutePipelineResponse"}
PYTHON_FOLDER = "google/cloud/firestore_v1/types/"


def canonical(name):
    return name.replace(PYTHON_FOLDER, "google/firestore/v1/")


def is_left_out(name):
    return name.startswith(PYTHON_FOLDER) and name.rsplit("/", 1)[1] in LEFT_OUT_FILES


def collect(file, found):
    if file.name in found or is_left_out(file.name):
        return
    for dependency in file.dependencies:
        collect(dependency, found)
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    found[file.name] = proto


def fix(message):
    for field in message.field:
        if field.name.endswith("_"):
            field.name = field.name.rstrip("_")
            field.ClearField("json_name")
    for nested in message.nested_type:
        fix(nested)


def add_verify(message):
    operation = [oneof.name for oneof in message.oneof_decl].index("operation")
    verify = descriptor_pb2.FieldDescriptorProto(
        name="verify",
        number=5,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
        oneof_index=operation,
    )
    # protoc wants the members of a oneof side by side.
    delete = next(place for place, field in enumerate(message.field) if field.name == "delete")
    message.field.insert(delete + 1, verify)


SWIFT = """// DO NOT EDIT: made by Definitions/generate.
// swift-format-ignore-file

/// The descriptors of the messages.
package enum FirestoreDescriptors {{
  /// A `google.protobuf.FileDescriptorSet` in base64, with line ends.
  package static let base64 = \"\"\"
{lines}
    \"\"\"
}}
"""


def main(output, swift):
    found = {}
    collect(firestore.ListenRequest.pb(firestore.ListenRequest()).DESCRIPTOR.file, found)
    for file in found.values():
        file.name = canonical(file.name)
        dependencies = [canonical(name) for name in file.dependency if not is_left_out(name)]
        file.ClearField("dependency")
        file.dependency.extend(dependencies)
        kept = [message for message in file.message_type if message.name not in LEFT_OUT_MESSAGES]
        file.ClearField("message_type")
        file.message_type.extend(kept)
        for message in file.message_type:
            fix(message)
            if message.name == "Write":
                add_verify(message)
    with open(output, "wb") as stream:
        descriptors = descriptor_pb2.FileDescriptorSet(file=found.values()).SerializeToString()
        stream.write(descriptors)
    text = base64.b64encode(descriptors).decode("ascii")
    with open(swift, "w", encoding="ascii") as stream:
        stream.write(SWIFT.format(lines=textwrap.indent("\n".join(textwrap.wrap(text, 96)), "    ")))


main(sys.argv[1], sys.argv[2])
