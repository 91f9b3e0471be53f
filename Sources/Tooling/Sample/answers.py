"""The answers of a scripted model to the sample's messages, for `openai-stub --script`."""

import datetime
import json

from conversations import short_name
from documents import utc

SCRIPT = "I am a script, not a model: I know only {}. docs/assistant.md says how to use a model."
GISTS = 5  # in the summary of a chat
NAMED = 6  # clients in an answer


def script(sample):
    """The stub's script: the first rule that a request contains answers it."""
    rules = questions(sample) + summaries(sample) + suggestions(sample) + facts(sample)
    return {"models": ["scripted"], "rules": rules}


def rule(contains, reply, after_tool=False):
    entry = {"contains": contains, "reply": reply}
    return {**entry, "afterTool": True} if after_tool else entry


def text(value):
    """A text as the functions send it, without the quotation marks around it."""
    return json.dumps(value, ensure_ascii=False)[1:-1]


def questions(sample):
    tomorrow = f"{sample.now.astimezone() + datetime.timedelta(days=1):%Y-%m-%d}"
    rules = [
        rule('"question":"which clients mentioned injuries', {
            "content": known(sample, "injuries", "These clients mentioned injuries.")}),
        rule('"question":"who is traveling', {
            "content": known(sample, "travel", "These clients wrote about travel.")}),
        rule('"question":"who had asthma as a kid', {
            "content": cited(sample, "asthma", "had asthma as a kid")}),
        rule('"question":"who can\'t eat nuts', {
            "content": cited(sample, "can't eat nuts", "can't eat nuts")})]
    tools = [
        ("remind me tomorrow at 9 to ask carl about his knee", "setReminder",
         {"text": "Ask Carl about his knee", "dueDate": f"{tomorrow}T09:00"}),
        ("write to carl that we skip squats this week", "sendMessage",
         {"client": "Carl", "chatId": None, "text": "Hi Carl, we skip squats this week to rest your knee."}),
        ("put a call with dana into my calendar, tomorrow from 9:30 to 10:00", "scheduleCall",
         {"client": "Dana", "title": "Call with Dana", "startTime": f"{tomorrow}T09:30",
          "endTime": f"{tomorrow}T10:00"})]
    for question, name, arguments in tools:
        contains = f'"question":"{question}'
        rules.append(rule(contains, {"toolCalls": [{"name": name, "arguments": arguments}]}))
        rules.append(rule(contains, {
            "content": "What came of it is under actions. A message is sent once you confirm it."},
            after_tool=True))
    rules.append(rule('"question":', {"content": SCRIPT.format(
        "the questions that `make sample` prints")}))
    return rules


def cited(sample, words, answer):
    """Tina's clients who wrote the words.

    Their messages are the first ones that the search finds, because the question has the words.
    """
    names = [short_name(chat.people[chat.client]) for chat in sample.chats
             if chat.kind == "client" and chat.trainer == "tina"
             and any(words in message.text for message in chat.messages)]
    if not names:
        return "None of your clients wrote that."
    sources = "".join(f"[{number}]" for number in range(1, len(names) + 1))
    return f"{' and '.join(names)} wrote of themselves: {answer} {sources}."


def known(sample, category, sentence):
    """Tina's clients with the newest fact of a category each."""
    parts = []
    for person in sample.clients:
        profile = sample.documents.get(f"clientProfiles/tina/clients/{person['uid']}")
        if profile and profile[category] and person.get("language", "en") == "en":
            # Of injuries the usual one, which the client writes most about.
            usual = [i for i in profile[category] if person["injury"] in i["text"].lower()]
            newest = max(usual or profile[category], key=lambda item: item["timestamp"])
            parts.append(f"{short_name(person)}: {newest['text']}.")
    return " ".join([sentence, *parts[:NAMED]])


def summaries(sample):
    rules = []
    for chat in sample.chats:
        last = chat.messages[-1]
        gists = []
        for message in chat.messages[-80:]:
            if message.gist and message.gist not in gists:
                gists.append(message.gist)
        end = f'"text":"{text(last.preview)}","time":"{utc(last.time):%Y-%m-%dT%H:%M}"}}]}}'
        rules.append(rule(end, {"json": {"summary": " ".join(gists[-GISTS:])}}))
    unknown = SCRIPT.format("the chats of `make sample` as they were at first")
    rules.append(rule('"messages":[{"sender":"', {"json": {"summary": unknown}}))
    return rules


def suggestions(sample):
    rules = {}
    for chat in sample.chats:
        for message in chat.messages:
            if message.reminder and message.sender in sample.people:
                name = sample.people[message.sender]["name"]
                sender = "the trainer" if message.sender == chat.trainer else name
                contains = f'{{"sender":"{text(sender)}","text":"{text(message.text)}"'
                rules.setdefault(contains, rule(contains, {
                    "json": {"text": message.reminder, "dueDate": None}}))
    nothing = rule('{"sender":"', {"json": {"text": None, "dueDate": None}})
    return [*rules.values(), nothing]


def facts(sample):
    rules = {}
    for chat in sample.chats:
        if chat.kind != "client":
            continue
        name = sample.people[chat.client]["name"]
        for message in chat.messages:
            if message.facts:
                contains = f'"client":"{text(name)}","message":"{text(message.text)}"'
                rules.setdefault(contains, rule(contains, {"json": {"facts": [
                    {"category": category, "confidence": confidence, "text": fact}
                    for category, confidence, fact in message.facts]}}))
    return [*rules.values(), rule('{"author":"', {"json": {"facts": []}})]
