"""The official client of OpenAI against the stub: proof that the stub speaks its protocol."""

import base64
import json
import struct

import openai
import pytest
import requests
from conftest import start_openai_stub
from pydantic import BaseModel

EMBEDDING = "text-embedding-3-small"
CHAT = "gpt-4o-mini"
HELLO = [{"role": "user", "content": "My knee is sore"}]
TOOLS = [{"type": "function", "function": {
    "name": "setReminder", "description": "Sets a reminder", "strict": True,
    "parameters": {"type": "object", "additionalProperties": False,
                   "required": ["text", "dueDate"],
                   "properties": {"text": {"type": "string"}, "dueDate": {"type": "string"}}}}}]
REMINDER = {"text": "call Carl about his knee", "dueDate": "2026-12-01"}


@pytest.fixture
def stub(openai_stub):
    openai_stub.control("reset", {})
    return openai_stub


# --- The process ----------------------------------------------------------------------------------


def test_it_ends_with_its_standard_input():
    process = start_openai_stub()
    assert json.loads(process.stdout.readline())["port"] > 0
    process.stdin.close()
    assert process.wait(timeout=10) == 0


def test_a_typing_error_in_a_script_is_noticed(stub):
    reply = requests.post(f"{stub.origin}/stub/script", json={"chatt": []}, timeout=10)
    assert reply.status_code == 400 and "chatt" in reply.text


# --- Embeddings -----------------------------------------------------------------------------------


def test_embeddings_are_the_same_in_both_encodings(stub):
    client = stub.client()
    texts = ["sore knee", "oats", "sore knee"]
    # The client asks for base64 of its own accord and decodes it.
    packed = client.embeddings.create(model=EMBEDDING, input=texts)
    plain = client.embeddings.create(model=EMBEDDING, input=texts, encoding_format="float")
    assert [entry["request"].get("encoding_format") for entry in stub.journal()] == [
        "base64", "float"]
    assert [item.index for item in packed.data] == [0, 1, 2]
    for one, other in zip(packed.data, plain.data):
        assert len(one.embedding) == 1536
        assert one.embedding == pytest.approx(other.embedding, abs=1e-7)
        assert sum(x * x for x in one.embedding) == pytest.approx(1, abs=1e-5)
    assert packed.data[0].embedding == packed.data[2].embedding
    assert packed.data[0].embedding != packed.data[1].embedding
    assert packed.model == f"stub-hash:{EMBEDDING}"
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > 0


def test_base64_is_little_endian_floats(stub):
    reply = requests.post(
        f"{stub.origin}/v1/embeddings", headers={"Authorization": "Bearer k"}, timeout=10,
        json={"model": EMBEDDING, "input": "a", "encoding_format": "base64", "dimensions": 8})
    data = base64.b64decode(reply.json()["data"][0]["embedding"])
    assert len(data) == 32
    assert sum(x * x for x in struct.unpack("<8f", data)) == pytest.approx(1, abs=1e-5)


def test_texts_that_share_words_are_close_where_asked_for(stub):
    stub.script(embeddings={"mode": "words", "dimension": 256})
    reply = stub.client().embeddings.create(
        model=EMBEDDING, input=["my knee is sore", "a sore knee again", "oats with berries"])
    knee, again, oats = (item.embedding for item in reply.data)
    assert sum(map(float.__mul__, knee, again)) > 0.3 > sum(map(float.__mul__, knee, oats))
    assert reply.model == f"stub-words:{EMBEDDING}" and len(knee) == 256


@pytest.mark.parametrize("model, options, dimension", [
    (EMBEDDING, {}, 1536), (EMBEDDING, {"dimensions": 256}, 256),
    ("text-embedding-3-large", {}, 3072), ("text-embedding-ada-002", {}, 1536)])
def test_dimensions_are_the_models_or_fewer(stub, model, options, dimension):
    reply = stub.client().embeddings.create(model=model, input="text", **options)
    assert len(reply.data[0].embedding) == dimension


def test_tokens_are_taken_too(stub):
    reply = stub.client().embeddings.create(model=EMBEDDING, input=[[1, 2, 3], [4]])
    assert len(reply.data) == 2 and reply.usage.prompt_tokens == 4


@pytest.mark.parametrize("body, words", [
    ({"input": [""]}, "empty string"),
    ({"input": []}, "empty array"),
    ({"input": ["a"] * 2049}, "2048"),
    ({"input": "word " * 8193}, "8192"),
    ({"input": ["word " * 8000] * 38}, "300000"),
    ({"input": [[1], ["a"]]}, "integers"),
    ({"input": "a", "dimensions": 1537}, "dimensions"),
    ({"input": "a", "dimensions": 8, "model": "text-embedding-ada-002"}, "dimensions")])
def test_what_the_api_refuses_to_embed_is_refused(stub, body, words):
    with pytest.raises(openai.BadRequestError, match=words):
        stub.client().embeddings.create(**{"model": EMBEDDING, **body})
    assert stub.statuses() == [400]


def test_as_many_inputs_as_the_api_takes_are_taken(stub):
    stub.script(embeddings={"dimension": 2})
    reply = stub.client().embeddings.create(model=EMBEDDING, input=["a"] * 2048)
    assert len(reply.data) == 2048


# --- Faults ---------------------------------------------------------------------------------------


def test_a_rate_limit_passes(stub):
    stub.fail({"route": "embeddings", "status": 429, "headers": {"retry-after-ms": "10"}})
    assert stub.client().embeddings.create(model=EMBEDDING, input="a").data
    assert stub.statuses() == [429, 200]


def test_errors_of_the_server_pass(stub):
    stub.fail({"route": "embeddings", "status": 500, "headers": {"retry-after-ms": "10"}},
              {"route": "embeddings", "status": 503, "headers": {"retry-after-ms": "10"}})
    assert stub.client().embeddings.create(model=EMBEDDING, input="a").data
    assert stub.statuses() == [500, 503, 200]


def test_a_rate_limit_that_stays_is_an_error(stub):
    stub.fail({"route": "chat", "times": 3, "status": 429, "headers": {"retry-after-ms": "10"}})
    with pytest.raises(openai.RateLimitError) as caught:
        stub.client().chat.completions.create(model=CHAT, messages=HELLO)
    assert caught.value.code == "rate_limit_exceeded"
    assert stub.statuses() == [429, 429, 429]


def test_a_spent_quota_is_not_tried_again(stub):
    stub.fail({"route": "chat", "status": 429, "headers": {"x-should-retry": "false"}, "body": {
        "error": {"message": "You exceeded your current quota", "type": "insufficient_quota",
                  "param": None, "code": "insufficient_quota"}}})
    with pytest.raises(openai.RateLimitError) as caught:
        stub.client().chat.completions.create(model=CHAT, messages=HELLO)
    assert caught.value.code == "insufficient_quota"
    assert stub.statuses() == [429]


def test_a_slow_answer_times_out(stub):
    stub.fail({"route": "chat", "times": 2, "delaySeconds": 30})
    stub.script(chat=[{"content": "late"}] * 2)
    with pytest.raises(openai.APITimeoutError):
        stub.client(timeout=0.3, max_retries=1).chat.completions.create(
            model=CHAT, messages=HELLO)
    assert len(stub.journal()) == 2


@pytest.mark.parametrize("fault", [{"reset": True}, {"truncateAfter": 1}])
def test_a_connection_that_breaks_is_an_error_and_passes(stub, fault):
    stub.script(chat=[{"content": "text"}] * 2)
    stub.fail({"route": "chat", **fault})
    with pytest.raises(openai.APIConnectionError):
        stub.client(max_retries=0).chat.completions.create(model=CHAT, messages=HELLO)
    reply = stub.client().chat.completions.create(model=CHAT, messages=HELLO)
    assert reply.choices[0].message.content == "text"


def test_an_answer_that_is_no_json_is_an_error(stub):
    stub.script(chat=[{"content": "text"}])
    stub.fail({"route": "chat", "alter": "halfJSON"})
    with pytest.raises(ValueError):
        stub.client(max_retries=0).chat.completions.create(model=CHAT, messages=HELLO)


# --- Chat -----------------------------------------------------------------------------------------


def test_replies_come_in_order_and_rules_first(stub):
    stub.script(chat=[{"content": "one"}, {"content": "two"}],
                rules=[{"contains": "KNEE", "reply": {"content": "Rest it."}}])

    def say(text):
        messages = [{"role": "system", "content": "knee"}, {"role": "user", "content": text}]
        reply = stub.client().chat.completions.create(model=CHAT, messages=messages)
        assert reply.choices[0].finish_reason == "stop"
        return reply.choices[0].message.content

    assert [say(text) for text in ("a", "my knee", "b", "his knee")] == [
        "one", "Rest it.", "two", "Rest it."]


def test_nothing_is_answered_that_is_not_scripted(stub):
    with pytest.raises(openai.BadRequestError) as caught:
        stub.client().chat.completions.create(model=CHAT, messages=HELLO)
    assert caught.value.code == "unscripted"


def test_a_tool_is_called_and_its_result_taken(stub):
    stub.script(chat=[{"toolCalls": [{"name": "setReminder", "arguments": REMINDER}]},
                      {"content": "Done."}])
    client = stub.client()
    first = client.chat.completions.create(model=CHAT, messages=HELLO, tools=TOOLS)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls" and message.content is None
    assert json.loads(message.tool_calls[0].function.arguments) == REMINDER
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "saved"}
    messages = [*HELLO, message.model_dump(exclude_none=True), result]
    second = client.chat.completions.create(model=CHAT, messages=messages, tools=TOOLS)
    assert second.choices[0].message.content == "Done."


@pytest.mark.parametrize("results, words", [
    ([], "did not have response messages: call_1"),
    ([{"role": "user", "content": "well?"}], "did not have response messages: call_1"),
    ([{"role": "tool", "tool_call_id": "call_2", "content": ""}], "not found in 'tool_calls'")])
def test_a_tools_result_must_follow_and_belong_to_its_call(stub, results, words):
    call = {"id": "call_1", "type": "function",
            "function": {"name": "setReminder", "arguments": "{}"}}
    messages = [*HELLO, {"role": "assistant", "tool_calls": [call]}, *results]
    with pytest.raises(openai.BadRequestError, match=words):
        stub.client().chat.completions.create(model=CHAT, messages=messages, tools=TOOLS)


def test_a_stream_is_assembled(stub):
    stub.script(chat=[{"content": "I will remind you.", "usage": {"completion_tokens": 11},
                       "toolCalls": [{"name": "setReminder", "arguments": REMINDER},
                                     {"name": "setReminder", "arguments": REMINDER}]}])
    stream = stub.client().chat.completions.create(
        model=CHAT, messages=HELLO, tools=TOOLS, stream=True,
        stream_options={"include_usage": True})
    text, calls, finish, usage = "", {}, None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, {"id": part.id, "arguments": [], "name": ""})
                call["name"] += part.function.name or ""
                call["arguments"].append(part.function.arguments)
    assert text == "I will remind you." and finish == "tool_calls"
    assert [call["name"] for call in calls.values()] == ["setReminder"] * 2
    assert len({call["id"] for call in calls.values()}) == 2
    for call in calls.values():
        assert len(call["arguments"]) > 3
        assert json.loads("".join(call["arguments"])) == REMINDER
    assert usage.completion_tokens == 11
    assert usage.total_tokens == usage.prompt_tokens + 11


def test_the_clients_own_assembly_of_a_stream_agrees(stub):
    stub.script(chat=[{"toolCalls": [{"name": "setReminder", "arguments": REMINDER}]}])
    with stub.client().chat.completions.stream(
            model=CHAT, messages=HELLO, tools=TOOLS) as stream:
        completion = stream.get_final_completion()
    arguments = completion.choices[0].message.tool_calls[0].function.parsed_arguments
    assert arguments == REMINDER


def test_a_stream_that_breaks_off_is_an_error(stub):
    stub.script(chat=[{"content": "a text of several fragments"}])
    stub.fail({"route": "chat", "truncateAfter": 3})
    stream = stub.client().chat.completions.create(model=CHAT, messages=HELLO, stream=True)
    with pytest.raises(openai.APIConnectionError):
        for _ in stream:
            pass


class Fact(BaseModel):
    category: str
    text: str


class Facts(BaseModel):
    facts: list[Fact]


FACTS_SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["facts"],
    "properties": {"facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}}},
    "$defs": {"Fact": {
        "type": "object", "additionalProperties": False, "required": ["category", "text"],
        "properties": {"category": {"type": "string"}, "text": {"type": "string"}}}}}


def test_structured_output_is_parsed(stub):
    stub.script(chat=[{"json": {"facts": [{"category": "injuries", "text": "sore knee"}]}}])
    reply = stub.client().chat.completions.parse(
        model=CHAT, messages=HELLO, response_format=Facts)
    assert reply.choices[0].message.parsed == Facts(
        facts=[Fact(category="injuries", text="sore knee")])


def test_a_refusal_and_a_cut_are_told(stub):
    stub.script(chat=[{"refusal": "I can't help."},
                      {"content": '{"facts": [', "finishReason": "length"}])
    client = stub.client()
    reply = client.chat.completions.parse(model=CHAT, messages=HELLO, response_format=Facts)
    assert reply.choices[0].message.refusal == "I can't help."
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(model=CHAT, messages=HELLO, response_format=Facts)


@pytest.mark.parametrize("reply", [
    {"json": {"facts": [{"category": "injuries"}]}}, {"json": {"facts": [], "more": 1}},
    {"content": "no JSON"}])
def test_a_script_that_no_model_could_have_answered_is_an_error(stub, reply):
    stub.script(chat=[reply, {**reply, "unchecked": True}])
    options = {"model": CHAT, "messages": HELLO, "response_format": {
        "type": "json_schema", "json_schema": {
            "name": "facts", "strict": True, "schema": FACTS_SCHEMA}}}
    with pytest.raises(openai.BadRequestError) as caught:
        stub.client().chat.completions.create(**options)
    assert caught.value.code == "unscripted"
    assert stub.client().chat.completions.create(**options).choices


@pytest.mark.parametrize("schema, words", [
    ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
     "additionalProperties"),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "required": [],
      "additionalProperties": False}, "Missing 'a'"),
    ({"type": "array", "items": {"type": "string"}}, "type: \"object\""),
    ({"type": "object", "properties": {"a": {"oneOf": []}}, "required": ["a"],
      "additionalProperties": False}, "not permitted"),
    ({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}},
      "required": ["a"], "additionalProperties": False}, "'properties', 'a', 'items'")])
def test_a_schema_that_is_not_strict_is_refused(stub, schema, words):
    with pytest.raises(openai.BadRequestError, match=words):
        stub.client().chat.completions.create(
            model=CHAT, messages=HELLO, response_format={
                "type": "json_schema",
                "json_schema": {"name": "facts", "strict": True, "schema": schema}})
    with pytest.raises(openai.BadRequestError, match=words):
        stub.client().chat.completions.create(
            model=CHAT, messages=HELLO, tools=[{"type": "function", "function": {
                "name": "save", "strict": True, "parameters": schema}}])


# --- Models and keys ------------------------------------------------------------------------------


def test_models_are_listed_and_others_unknown(stub):
    client = stub.client()
    assert EMBEDDING in [model.id for model in client.models.list()]
    stub.script(models=["tiny"])
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").object == "model"
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model=EMBEDDING, input="a")
    assert caught.value.code == "model_not_found"


def test_a_key_is_needed_and_kept_out_of_the_journal(stub):
    body = {"model": EMBEDDING, "input": "a"}
    assert requests.post(
        f"{stub.origin}/v1/embeddings", json=body, timeout=10).status_code == 401
    stub.script(key="sk-right")
    with pytest.raises(openai.AuthenticationError) as caught:
        stub.client(api_key="sk-wrong").models.list()
    assert caught.value.code == "invalid_api_key"
    assert stub.client(api_key="sk-right").models.list().data
    assert "sk-" not in json.dumps(stub.journal())


def test_the_journal_is_cleared_on_demand(stub):
    stub.client().models.list()
    assert [entry["route"] for entry in stub.journal()] == ["models"]
    requests.delete(f"{stub.origin}/stub/journal", timeout=10)
    assert stub.journal() == []
