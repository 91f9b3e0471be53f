"""The sample's documents and accounts, by path, in the form of Psst's data model."""

import datetime
import hashlib
import json
import random
import re

from conversations import FOLDER, MINUTE, Chat, Composer, read_dialogues, short_name

DAY = datetime.timedelta(days=1)
HOUR = datetime.timedelta(hours=1)
PASSWORD = "secret1"
# Ids of documents that break the model on purpose, which readers tolerate.
ODD = "odd-"
FULL_CHAT = f"{ODD}full-chat"

CATEGORIES = ["injuries", "goals", "equipment", "preferences", "travel", "stressFactors"]
ITEMS_MAX = 6  # of a category in a profile
# A document has at most 1 MiB; FULL_CHAT has a little less, too little for its next message.
DOCUMENT_BYTES_MAX = 1_048_576
BYTES_LEFT = 250


class Sample:
    """Everything that the sample writes, computed without a suite.

    `documents` has what triggers need not see. `live` has the latest messages and a few events,
    in order, for the time when triggers run again. `final` has chats and contacts as the latest
    messages leave them, which the functions have written too, if there are any.
    """

    def __init__(self, messages, live, seed, now):
        self.now = now.replace(microsecond=0)
        self.end = self.now - HOUR
        self.rng = random.Random(f"{seed}/documents")
        people = json.loads((FOLDER / "people.json").read_text(encoding="utf-8"))
        self.trainers, self.prospects = people["trainers"], people["prospects"]
        self.clients, self.others = people["clients"], people["others"]
        self.roleless = people["roleless"]
        self.people = {person["uid"]: person for person in
                       self.trainers + self.clients + self.others + [self.roleless]}
        self.chats = self.make_chats(people)
        composer = Composer(read_dialogues(), seed, self.end)
        total = sum(chat.weight for chat in self.chats)
        for chat in self.chats:
            composer.fill(chat, round(messages * chat.weight / total))
        every = sorted((message.time, chat.id, message.id)
                       for chat in self.chats for message in chat.messages)
        self.live_messages = {entry[1:] for entry in every[-live:]} if live else set()
        self.documents, self.live, self.final = {}, [], {}
        self.accounts = []
        for step in (self.users, self.conversations, self.contacts, self.profiles, self.calendar,
                     self.assistant, self.business, self.odd_ones):
            step()

    # --- Chats ------------------------------------------------------------------------------------

    def make_chats(self, people):
        def known(uids):
            return {uid: self.people[uid] for uid in uids if uid in self.people}

        chats = []
        for person in self.clients + self.others:
            members = [person["trainer"], person["uid"]]
            chat = Chat("-".join(members), members, person["trainer"],
                        language=person.get("language", "en"), weight=person["weight"])
            kind = person.get("kind", "client")
            chat.first_day, chat.last_day = {
                "client": (self.rng.randint(60, 89), 0), "removed": (88, 41),
                "noContact": (self.rng.randint(70, 89), self.rng.randint(24, 50))}[kind]
            chats.append(chat)
        for entry in people["groups"] + people["pairs"]:
            is_group = "name" in entry
            chats.append(Chat(
                entry["id"], entry["members"], entry["trainer"], entry.get("tag", "group"),
                weight=entry["weight"], group_name=entry.get("name", ""), first_day=84,
                last_day=1 if is_group else 3))
        # Some chats end today, the first of them an hour ago; a few have been silent for weeks.
        ongoing = [chat for chat in chats if chat.last_day == 0]
        for rank, chat in enumerate(ongoing):
            if rank % 2 == 0 and rank < 24:
                chat.minutes_before_end = rank * 14 + (rank > 0) * self.rng.randint(0, 9)
            else:
                silent = rank % 9 == 7
                chat.last_day = self.rng.randint(17, 30) if silent else self.rng.randint(1, 6)
                # Should the last conversation reach into today, it ends before the others.
                chat.minutes_before_end = 120 + rank
        for chat in chats:
            chat.people = known(chat.members)
        return chats

    def conversations(self):
        for chat in self.chats:
            path = f"chats/{chat.id}"
            older = [m for m in chat.messages if (chat.id, m.id) not in self.live_messages]
            for message in chat.messages:
                data = self.message(chat, message)
                if (chat.id, message.id) in self.live_messages:
                    self.live.append((message.time, f"{path}/messages/{message.id}", data))
                else:
                    self.documents[f"{path}/messages/{message.id}"] = data
            self.documents[path] = self.chat(chat, older[-1] if older else None)
            if len(older) < len(chat.messages):
                self.final[path] = self.chat(chat, chat.messages[-1])
        self.live.sort(key=lambda entry: entry[:2])
        self.live = [entry[1:] for entry in self.live]

    @staticmethod
    def message(chat, message):
        data = {"id": message.id, "text": message.text, "senderID": message.sender,
                "timestamp": message.time, "readBy": message.read_by}
        if message.is_photo:
            folder = f"gs://demo-psst.appspot.com/chats/{chat.id}/{message.id}"
            data.update({
                "mediaType": "image", "mediaURL": f"{folder}/image.jpg",
                "mediaThumbnailURL": f"{folder}/thumb.jpg",
                "mediaSize": 180_000 + stable_number(message.text, 900_000),
                "mediaDimensions": {"width": 1920, "height": 1080}})
        return data

    @staticmethod
    def chat(chat, last):
        created = chat.messages[0].time - 5 * MINUTE
        data = {"id": chat.id, "members": chat.members, "isGroupChat": bool(chat.group_name),
                "lastMessage": last.preview if last else "",
                "lastMessageTimestamp": last.time if last else created,
                "createdAt": created, "updatedAt": last.time if last else created}
        if chat.group_name:
            data["groupName"] = chat.group_name
        return data

    # --- People -----------------------------------------------------------------------------------

    def users(self):
        for person in self.people.values():
            uid = person["uid"]
            created = self.now - (120 if person in self.trainers else 92) * DAY
            data = {"id": uid, "uid": uid, "email": address(uid), "displayName": person["name"],
                    "createdAt": created + stable_number(uid, 600) * MINUTE,
                    "updatedAt": self.now - stable_number(uid, 40) * DAY}
            if person is not self.roleless:
                data["role"] = "trainer" if person in self.trainers else "client"
            if stable_number(uid, 3) == 0:
                data["fcmToken"] = f"sample-token-{uid}"
            if stable_number(uid, 7) == 0:
                data["notificationSettings"] = {"messages": False}
            self.documents[f"users/{uid}"] = data
            self.account(uid, person["name"])
            last = max((m.time for chat in self.chats for m in chat.messages if m.sender == uid),
                       default=created)
            self.documents[f"presence/{uid}"] = {
                "online": self.end - last < HOUR, "lastSeen": last}
        self.account("ada", "Ada Admin", customAttributes=json.dumps({"admin": True}))
        for trainer in self.trainers:
            self.documents[f"users/{trainer['uid']}/preferences/assistant"] = {
                "tone": trainer["tone"], "style": trainer["style"],
                "timeZone": "America/New_York", "autoSend": False, "inactiveDays": 14}

    def account(self, uid, name, **more):
        self.accounts.append({
            "localId": uid, "email": address(uid), "displayName": name, "rawPassword": PASSWORD,
            "emailVerified": uid != "greg", **more})

    def contacts(self):
        for person in self.clients:
            chat = self.chat_of(person)
            path = f"contacts/{person['trainer']}/clients/{person['uid']}"
            older = [m for m in chat.messages if (chat.id, m.id) not in self.live_messages]
            data = {"id": person["uid"], "clientId": person["uid"],
                    "displayName": person["name"], "email": address(person["uid"]),
                    "addedAt": chat.messages[0].time - 3 * HOUR, "source": "trainer"}
            self.documents[path] = {**data, **({"lastContactedAt": older[-1].time} if older else {})}
            if len(older) < len(chat.messages):
                self.final[path] = {**data, "lastContactedAt": chat.messages[-1].time}
        for person in self.others:
            if person["kind"] == "removed":
                self.documents[f"contacts/{person['trainer']}/removed/{person['uid']}"] = {
                    "removedAt": self.now - 40 * DAY}
        for number, prospect in enumerate(self.prospects):
            slug = re.sub(r"[^a-z]+", "-", prospect["name"].lower().replace("ë", "e")).strip("-")
            uid = f"prospect-{slug}"
            data = {"id": uid, "prospectId": uid, "displayName": prospect["name"],
                    "placeholderEmail": f"{uid}@psst.app",
                    "addedAt": self.now - (5 + 11 * number) * DAY}
            if "convertedTo" in prospect:
                data["convertedToClientId"] = prospect["convertedTo"]
                data["addedAt"] = self.now - 95 * DAY
            self.documents[f"contacts/{prospect['trainer']}/prospects/{uid}"] = data

    def chat_of(self, person):
        name = f"{person['trainer']}-{person['uid']}"
        return next(chat for chat in self.chats if chat.id == name)

    # --- What trainers know and plan ----------------------------------------------------------------

    def profiles(self):
        for person in self.clients:
            chat = self.chat_of(person)
            items = {category: [] for category in CATEGORIES}
            for message in chat.messages:
                if (chat.id, message.id) in self.live_messages:
                    continue  # the function reads it
                for category, confidence, text in message.facts:
                    self.add_item(items[category], chat, message, category, confidence, text)
            count = sum(map(len, items.values()))
            if not count:
                continue
            times = [item["timestamp"] for each in items.values() for item in each]
            profile = {"clientId": person["uid"], "trainerId": person["trainer"], **items,
                       "totalItems": count, "createdAt": min(times), "updatedAt": max(times)}
            if stable_number(person["uid"], 2):
                profile["lastReviewedAt"] = self.now - stable_number(person["uid"], 20) * DAY
            self.documents[f"clientProfiles/{person['trainer']}/clients/{person['uid']}"] = profile

    @staticmethod
    def add_item(items, chat, message, category, confidence, text):
        known = next((item for item in items if item["text"].lower() == text.lower()), None)
        if known:
            known["timestamp"] = message.time
            return
        digest = hashlib.sha256("\n".join([chat.id, message.id, category, text]).encode())
        item = {"id": digest.hexdigest()[:32], "text": text[:1].upper() + text[1:],
                "category": category, "confidence": confidence, "timestamp": message.time,
                "sourceMessageId": message.id, "sourceChatId": chat.id}
        if stable_number(text, 4) == 0:
            item["confirmed"] = True
        items.append(item)
        del items[:-ITEMS_MAX]

    def calendar(self):
        today = self.end.astimezone().replace(hour=0, minute=0, second=0)
        kinds = ["training", "training", "call", "training", "adhoc"]
        for trainer in self.trainers:
            mine = [p for p in self.clients if p["trainer"] == trainer["uid"]]
            for number in range(24):
                person = mine[number % len(mine)]
                kind = kinds[number % len(kinds)]
                start = today + (number - 14) * DAY + (7 + (number * 5) % 12) * HOUR
                status = "cancelled" if number % 8 == 5 else (
                    "completed" if start < self.now else "scheduled")
                self.event(trainer, f"e{number:02}", person, kind, start,
                           30 if kind == "call" else 60, status)
        tomorrow = today + 2 * DAY
        carl, dana, *_ = self.clients
        for name, person, start in (("overlap-1", carl, 9 * HOUR), ("overlap-2", dana, 9.5 * HOUR)):
            path, data = self.event(self.trainers[0], name, person, "call", tomorrow + start, 60,
                                    "scheduled", by="ai")
            # detectCalendarConflicts writes the reminder.
            del self.documents[path]
            self.live.append((path, data))
        texts = [
            ("Ask {} about the physiotherapist", -30, True), ("Send {} the new plan", -9, True),
            ("Check with {} whether the shoes fit", -3, False), ("Call {} back", -1, False),
            ("Book the small room for {}", 0, False), ("Wish {} a happy birthday", 2, False),
            ("Ask {} for the race photos", 6, False), ("Move {} to the ten-session card", 12, False)]
        for trainer in self.trainers:
            mine = [p for p in self.clients if p["trainer"] == trainer["uid"]]
            for number, (text, days, completed) in enumerate(texts):
                self.documents[f"reminders/{trainer['uid']}-r{number}"] = {
                    "trainerId": trainer["uid"], "completed": completed,
                    "text": text.format(short_name(mine[number % len(mine)])),
                    "dueDate": utc(today + days * DAY + 9 * HOUR),
                    "createdBy": "ai" if number % 3 == 0 else "trainer"}

    def event(self, trainer, name, person, kind, start, minutes, status, by="trainer"):
        titles = {"training": "Training with {}", "call": "Call with {}", "adhoc": "Coffee with {}"}
        path = f"calendar/{trainer['uid']}/events/{name}"
        self.documents[path] = {
            "trainerId": trainer["uid"], "clientId": person["uid"],
            "title": titles[kind].format(short_name(person)), "startTime": utc(start),
            "endTime": utc(start + minutes * MINUTE), "eventType": kind, "status": status,
            "createdBy": by}
        return path, self.documents[path]

    def assistant(self):
        """A conversation with the assistant, and what it has done."""
        chat = self.chat_of(self.clients[0])
        source = next(m for m in chat.messages if m.facts)
        began = self.now - 2 * DAY
        path = "users/tina/ai_conversations/knees"
        self.documents[path] = {"createdAt": began, "updatedAt": began + 3 * MINUTE}
        turns = [
            ("t1", "user", "What did Carl say about his injury?", {}),
            ("t1", "assistant", f"Carl wrote: “{source.text}” [1]", {"answer": {
                "sources": [{"number": 1, "chatId": chat.id, "messageId": source.id,
                             "score": 0.41}],
                "actionIds": [], "promptTokens": 512, "completionTokens": 38,
                "model": "scripted"}}),
            ("t2", "user", "Remind me on Friday to ask him about it", {}),
            ("t2", "assistant", "I will remind you on Friday at nine.", {
                "actionIds": ["sample-done"], "answer": {
                    "sources": [], "actionIds": ["sample-done"], "promptTokens": 604,
                    "completionTokens": 21, "model": "scripted"}})]
        for number, (turn, role, content, more) in enumerate(turns):
            self.documents[f"{path}/messages/a{number}"] = {
                "role": role, "content": content, "timestamp": began + number * MINUTE,
                "turnId": turn, **more}
        reminder = "reminders/tina-r0"
        self.documents["aiActions/sample-done"] = {
            "trainerId": "tina", "conversationId": "knees", "action": "setReminder",
            "parameters": {"text": "Ask Carl about the physiotherapist", "dueDate": "Friday"},
            "status": "done", "result": reminder, "timestamp": began + 2 * MINUTE}
        self.documents["aiActions/sample-proposed"] = {
            "trainerId": "tina", "conversationId": "knees", "action": "sendMessage",
            "parameters": {"chatId": chat.id, "text": "Hi Carl, how is the knee today?"},
            "targetName": "Carl Jensen", "status": "proposed", "timestamp": began + 3 * MINUTE,
            "expiresAt": began + 13 * MINUTE}

    def business(self):
        """Flags, entitlements, personal trainers and their workouts."""
        flag = "relationship_validation_enabled"
        self.documents["remoteConfig/template"] = {
            "conditions": [{"name": flag, "expression": "percent <= 10"}],
            "parameters": {
                flag: {"defaultValue": {"value": "false"},
                       "conditionalValues": {flag: {"value": "true"}}},
                "trainer_chat_enabled": {"defaultValue": {"value": "true"}},
                "personal_trainer_enabled": {"defaultValue": {"value": "true"}},
                "cms_workout_sync_enabled": {"defaultValue": {"value": "false"}}}}
        features = {"tina": ["personalTrainer", "trainerWorkouts"], "owen": ["personalTrainer"]}
        students = {"tina": ["carl", "dana", "priya"], "owen": ["ben", "chloe"]}
        for trainer in self.trainers:
            uid = trainer["uid"]
            if uid in features:
                self.documents[f"entitlements/{uid}"] = {
                    "features": features[uid], "grantedAt": self.now - 60 * DAY, "grantedBy": "ada"}
            self.documents[f"personalTrainers/{uid}"] = {
                "displayName": trainer["name"], "email": address(uid), "bio": trainer["bio"],
                "specializations": trainer["specializations"], "isActive": uid != "samir",
                "maxStudents": 10, "currentStudentCount": len(students.get(uid, [])),
                "inviteCode": trainer["inviteCode"], "createdAt": self.now - 100 * DAY,
                "updatedAt": self.now - 3 * DAY}
        links = [(trainer, uid, "active") for trainer in students for uid in students[trainer]]
        links += [("tina", "noah", "pending"), ("mei", "leo", "cancelled")]
        for number, (trainer, uid, status) in enumerate(links):
            asked = self.now - (50 - 5 * number) * DAY
            self.documents[f"trainerStudents/{trainer}-{uid}"] = {
                "trainerId": trainer, "studentId": uid, "status": status,
                "requestedBy": "student" if number % 2 else "trainer", "requestedAt": asked,
                "createdAt": asked, **({"acceptedAt": asked + DAY} if status == "active" else {})}
            if status == "active":
                self.documents[f"users/{uid}"]["personalTrainerId"] = trainer
        self.workouts(students)

    def workouts(self, students):
        plans = [("tina", "Strong knees", "legs", "moderate", ["Split squats", "Step-ups"]),
                 ("tina", "Pull-up ladder", "back", "high", ["Rows", "Negative pull-ups"]),
                 ("owen", "Deadlift week one", "full body", "high", ["Deadlift", "Planks"])]
        for number, (trainer, title, focus, intensity, exercises) in enumerate(plans):
            items = [{"exerciseId": name.lower().replace(" ", "-"), "exerciseName": name,
                      "sets": 3, "reps": 10, "restSeconds": 60} for name in exercises]
            self.documents[f"trainerWorkouts/{trainer}-w{number}"] = {
                "trainerId": trainer, "assignedStudents": students[trainer][:2], "title": title,
                "focus": focus, "estimatedDurationMinutes": 35, "intensity": intensity,
                "phases": [{"name": "Main", "items": items}],
                "schedule": {"type": "weekly", "dayOfWeek": 1 + number * 2}, "isActive": True,
                "createdAt": self.now - (30 - number) * DAY, "version": 1}

    # --- What breaks the model on purpose -----------------------------------------------------------

    def odd_ones(self):
        chat = self.chat_of(self.clients[1])
        middle = chat.messages[len(chat.messages) // 2].time + MINUTE / 2
        early = self.now - 60 * DAY
        self.documents.update({
            f"users/{ODD}number-name": {"id": f"{ODD}number-name", "displayName": 42,
                                        "role": "client", "createdAt": early},
            f"users/{ODD}unknown-role": {"id": f"{ODD}unknown-role", "displayName": "Rory Unknown",
                                         "role": "nutritionist", "createdAt": early},
            f"chats/{ODD}no-members": {"id": f"{ODD}no-members", "lastMessage": "Anybody here?",
                                       "lastMessageTimestamp": early, "isGroupChat": False},
            f"chats/{ODD}no-members/messages/m0001": {
                "id": "m0001", "text": "Anybody here?", "senderID": "greg", "timestamp": early,
                "readBy": []},
            f"chats/{chat.id}/messages/{ODD}number-text": {
                "id": f"{ODD}number-text", "text": 12345, "senderID": "dana", "timestamp": middle,
                "readBy": ["dana"]},
            f"contacts/samir/clients/{ODD}no-date": {
                "clientId": f"{ODD}no-date", "displayName": "No Date", "addedAt": "last spring"},
            f"calendar/samir/events/{ODD}no-start": {"trainerId": "samir", "title": "Sometime"},
            f"reminders/{ODD}no-date": {"trainerId": "samir", "text": "Some day", "dueDate": "soon",
                                        "completed": "no"},
        })
        # recordContact cannot show the second message here: the document would be too large.
        first = "I pasted my training log since 2019 into this chat's notes 🙈"
        path, members = f"chats/{FULL_CHAT}", ["samir", "rosa"]
        full = {"id": FULL_CHAT, "members": members, "isGroupChat": False, "lastMessage": first,
                "lastMessageTimestamp": early, "createdAt": early, "updatedAt": early, "notes": ""}
        free = DOCUMENT_BYTES_MAX - BYTES_LEFT - document_bytes(path, full)
        line = "2019-05-01 three rounds, jump rope, felt fine. "
        full["notes"] = (line * (free // len(line) + 1))[:free]
        self.documents[path] = full
        self.documents[f"{path}/messages/m0001"] = {
            "id": "m0001", "text": first, "senderID": "rosa", "timestamp": early, "readBy": members}
        second = " ".join(
            f"Week {week}: three rounds on the bag, two on the pads, ten minutes of rope."
            for week in range(1, 13))
        self.live.append((f"{path}/messages/m0002", {
            "id": "m0002", "text": second, "senderID": "samir", "timestamp": self.end - 2 * HOUR,
            "readBy": ["samir"]}))


def address(uid):
    return f"{uid}@example.com"


def utc(time):
    return time.astimezone(datetime.timezone.utc)


def stable_number(text, below):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % below


def document_bytes(path, fields):
    """The size of a document with simple fields, by Firestore's rules."""
    def size(value):
        if isinstance(value, bool):
            return 1
        if isinstance(value, str):
            return len(value.encode()) + 1
        return sum(map(size, value)) if isinstance(value, list) else 8

    name = sum(len(part.encode()) + 1 for part in path.split("/")) + 16
    return name + sum(len(key) + 1 + size(value) for key, value in fields.items()) + 32
