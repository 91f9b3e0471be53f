"""Chats composed of hand-written conversations, the same for the same seed."""

import dataclasses
import datetime
import pathlib
import random
import re

FOLDER = pathlib.Path(__file__).resolve().parent

MINUTE = datetime.timedelta(minutes=1)
UNITS = {"m": 1, "h": 60, "d": 24 * 60}

# When conversations begin, in minutes of the day.
MORNING, MIDDAY, EVENING = (375, 520), (705, 800), (1050, 1250)
# Nobody writes before the first or after the last minute, unless a conversation is under way.
DAY_BEGINS, DAY_ENDS = 370, 1380

WEEKDAYS = {
    "en": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "es": ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"],
    "de": ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
    "ja": ["月曜日", "火曜日", "水曜日", "木曜日", "金曜日", "土曜日", "日曜日"],
}
CLOCK = ["6:30 AM", "7:00 AM", "7:45 AM", "12:15 PM", "4:30 PM", "5:30 PM", "6:15 PM", "7:00 PM"]
CLOCK_24 = ["6:30", "7:00", "7:45", "12:15", "16:30", "17:30", "18:15", "19:00"]
EXERCISES = [
    "goblet squats", "split squats", "Romanian deadlifts", "lunges", "step-ups", "push-ups",
    "rows", "hip thrusts", "overhead presses", "farmer's walks", "planks", "box jumps",
    "glute bridges", "side planks", "pull-downs"]
WEIGHTS = ["15 pounds", "20 pounds", "25 pounds", "35 pounds", "45 pounds", "60 pounds"]
NEW_GOALS = [
    "a handstand", "ten pull-ups", "a sprint triathlon", "learning the Olympic lifts",
    "hiking a long trail", "rowing 2,000 meters under eight minutes"]
PLACES = ["the river bridge", "Oak Park", "the old stadium", "the boathouse", "Mill Creek"]
LANGUAGES = {"es", "de", "ja"}
KINDS = {"group", "trainers", "friends"}
LEGS = ("knee", "ankle", "hip", "hamstring", "shin", "calf", "Achilles")


@dataclasses.dataclass
class Line:
    speaker: str
    gap: int  # minutes; 0 lets the usual few minutes pass
    is_photo: bool
    text: str
    facts: list = dataclasses.field(default_factory=list)  # (category, confidence, text)
    reminder: str = ""


@dataclasses.dataclass
class Dialogue:
    name: str
    tags: set
    gist: str = ""
    lines: list = dataclasses.field(default_factory=list)

    @property
    def language(self):
        return next(iter(self.tags & LANGUAGES), "en")

    @property
    def kind(self):
        return next(iter(self.tags & KINDS), "client")


@dataclasses.dataclass
class Message:
    id: str
    sender: str
    text: str
    time: datetime.datetime
    is_photo: bool
    facts: list
    reminder: str
    gist: str  # of its conversation
    read_by: list = dataclasses.field(default_factory=list)

    @property
    def preview(self):
        return self.text if self.text or not self.is_photo else "Photo"


@dataclasses.dataclass
class Chat:
    id: str
    members: list
    trainer: str
    kind: str = "client"
    language: str = "en"
    weight: float = 1
    group_name: str = ""
    people: dict = dataclasses.field(default_factory=dict)  # by uid
    first_day: int = 85  # days ago
    last_day: int = 0
    minutes_before_end: int = 0  # for chats that end today
    messages: list = dataclasses.field(default_factory=list)

    @property
    def client(self):
        return next((uid for uid in self.members if uid != self.trainer), self.trainer)


LINE = re.compile(r"([TCDE])(?:\+(\d+)([mhd]))?(~photo)?: ?(.*)")


def read_dialogues(path=FOLDER / "dialogues.txt"):
    """Reads the conversations; an unknown line is an error that names its number."""
    dialogues = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = LINE.fullmatch(text)
        if not text.strip() or text.startswith("#"):
            continue
        if text.startswith("== "):
            name, *tags = text[3:].split()
            dialogues.append(Dialogue(name, set(tags)))
        elif text.startswith("gist: "):
            dialogues[-1].gist = text[6:]
        elif text.startswith("fact "):
            kind, _, fact = text.partition(": ")
            dialogues[-1].lines[-1].facts.append((*kind.split()[1:], fact))
        elif text.startswith("remind: "):
            dialogues[-1].lines[-1].reminder = text[8:]
        elif line:
            speaker, amount, unit, photo, words = line.groups()
            gap = int(amount) * UNITS[unit] if amount else 0
            dialogues[-1].lines.append(Line(speaker, gap, bool(photo), words))
        else:
            raise ValueError(f"{path.name}, line {number} is not understood: {text}")
    return dialogues


class Composer:
    """Fills chats with conversations, spreading each of them over the chats evenly."""

    def __init__(self, dialogues, seed, end):
        self.dialogues = dialogues
        self.seed = seed
        # The time of the last message, in this machine's zone, so that mornings are mornings.
        self.end = end.astimezone().replace(microsecond=0)
        self.uses = {dialogue.name: 0 for dialogue in dialogues}

    def fill(self, chat, count):
        """Adds about `count` messages, at least one conversation, in order of time."""
        rng = random.Random(f"{self.seed}/{chat.id}")
        chosen = self.choose(chat, count, rng)
        last = self.end - chat.minutes_before_end * MINUTE
        times = []
        for index, dialogue in enumerate(chosen):
            start = self.start(chat, dialogue, index, len(chosen), rng)
            if times:
                start = max(start, times[-1] + 45 * MINUTE)
            slots = self.slots(chat, dialogue, start, rng)
            # Numbers are drawn for each line, whatever its time, so that a seed repeats the texts.
            for line in dialogue.lines:
                start = self.after(start, line, rng) if line is not dialogue.lines[0] else start
                times.append(start)
                chat.messages.append(self.message(chat, dialogue, line, slots, rng))
        if chat.last_day == 0:
            # The last conversation ends now; what a day could not hold moves closer together.
            shift = last - times[-1]
            for index in range(len(times) - len(chosen[-1].lines), len(times)):
                times[index] += shift
        for index in reversed(range(len(times))):
            limit = times[index + 1] if index + 1 < len(times) else last + MINUTE
            times[index] = min(times[index], limit - MINUTE)
        for number, (message, time) in enumerate(zip(chat.messages, times), 1):
            message.id = f"m{number:04}"
            message.time = time.astimezone(datetime.timezone.utc)
        self.read(chat, len(chosen[-1].lines), rng)

    def choose(self, chat, count, rng):
        fitting = [
            dialogue for dialogue in self.dialogues
            if dialogue.kind == chat.kind and "first" not in dialogue.tags
            and dialogue.language in (chat.language, "en" if chat.kind != "client" else "")
            and ("legs" not in dialogue.tags or self.is_leg(chat))]
        chosen = [
            dialogue for dialogue in self.dialogues
            if "first" in dialogue.tags and chat.kind == "client"
            and dialogue.language == chat.language]
        chosen = rng.sample(chosen, 1) if chosen else []
        messages = sum(len(dialogue.lines) for dialogue in chosen)
        recent = [dialogue.name for dialogue in chosen]
        while messages < count - 2 or not chosen:
            # The rarest so far that this chat has not had for long.
            fresh = [d for d in fitting if d.name not in recent[-(len(fitting) - 1):]] or fitting
            dialogue = min(fresh, key=lambda d: (self.uses[d.name], rng.random()))
            self.uses[dialogue.name] += 1
            chosen.append(dialogue)
            recent.append(dialogue.name)
            messages += len(dialogue.lines)
        return chosen

    @staticmethod
    def is_leg(chat):
        injury = chat.people.get(chat.client, {}).get("injury", "")
        return any(part in injury for part in LEGS)

    def start(self, chat, dialogue, index, count, rng):
        """The beginning of a conversation, from the chat's first day to its last."""
        share = index / max(1, count - 1)
        jitter = rng.uniform(-0.4, 0.4) / max(1, count - 1) if 0 < index < count - 1 else 0
        days = round(chat.last_day + (chat.first_day - chat.last_day) * (1 - share - jitter))
        usual = rng.choices([MORNING, MIDDAY, EVENING], [3, 2, 5])[0]
        hours = {"morning": MORNING, "midday": MIDDAY, "evening": EVENING}
        minutes = rng.uniform(*next((hours[t] for t in dialogue.tags if t in hours), usual))
        midnight = self.end.replace(hour=0, minute=0, second=0)
        return midnight - datetime.timedelta(days=max(0, days)) + minutes * MINUTE

    @staticmethod
    def after(time, line, rng):
        gap = line.gap * rng.uniform(0.85, 1.15) if line.gap else rng.uniform(0.5, 8)
        sleep = rng.uniform(0, 90)
        time += gap * MINUTE
        minutes = time.hour * 60 + time.minute
        if line.gap and not DAY_BEGINS <= minutes <= DAY_ENDS:
            days = datetime.timedelta(days=1 if minutes > DAY_ENDS else 0)
            time = time.replace(hour=0, minute=0) + days + (DAY_BEGINS + sleep) * MINUTE
        return time

    def slots(self, chat, dialogue, start, rng):
        trainer, client = chat.people[chat.trainer], chat.people[chat.client]
        language = dialogue.language
        days = [WEEKDAYS[language][(start.weekday() + n) % 7] for n in rng.sample(range(2, 7), 2)]
        clock = rng.sample(CLOCK if language == "en" else CLOCK_24, 2)
        exercises = rng.sample(EXERCISES, 2)
        weight = rng.randrange(len(WEIGHTS) - 1)
        members = [uid for uid in chat.members if uid != chat.trainer and uid in chat.people]
        rng.shuffle(members)
        names = [short_name(chat.people[uid]) for uid in members] or [""]
        slots = {name: client.get(name, "") for name in
                 ("injury", "goal", "gear", "city", "job", "likes")}
        return {
            **slots, "client": short_name(client), "trainer": short_name(trainer),
            "day": days[0], "day2": days[1], "time": clock[0], "time2": clock[1],
            "exercise": exercises[0], "exercise2": exercises[1], "weight": WEIGHTS[weight],
            "weight2": WEIGHTS[weight + 1], "reps": str(rng.choice([8, 10, 12, 15])),
            "miles": str(rng.choice([3, 4, 5, 6, 8])), "goal2": rng.choice(NEW_GOALS),
            "place": rng.choice(PLACES), "member": names[-1], "member2": names[min(1, len(names) - 1)],
            # The people behind the letters of a group's conversation.
            "T": chat.trainer, "C": members[0], "D": members[min(1, len(members) - 1)],
            "E": members[min(2, len(members) - 1)],
        }

    @staticmethod
    def message(chat, dialogue, line, slots, rng):
        sender = slots[line.speaker]
        facts = [(category, confidence, fill(text, slots, rng))
                 for category, confidence, text in line.facts]
        return Message(
            "", sender, fill(line.text, slots, rng), None, line.is_photo, facts,
            fill(line.reminder, slots, rng), fill(dialogue.gist, slots, rng))

    @staticmethod
    def read(chat, last_conversation, rng):
        """Lets everybody read all but, in some chats, the end of the last conversation."""
        unread = {}
        for uid in chat.members:
            unread[uid] = rng.choice([0, 0, 0, 1, 2]) if chat.last_day < 2 else 0
        for position, message in enumerate(reversed(chat.messages)):
            message.read_by = [
                uid for uid in chat.members
                if uid == message.sender or position >= min(unread[uid], last_conversation)]
            # Who has written has read what came before.
            unread[message.sender] = 0


def short_name(person):
    return person.get("short") or person["name"].split()[0]


def fill(text, slots, rng):
    """Picks one of each [a|b] and fills in each {slot}; a sentence begins with a capital."""
    text = re.sub(r"\[([^\[\]]*\|[^\[\]]*)\]", lambda m: rng.choice(m[1].split("|")), text)

    def slot(match):
        word = slots[match[1]]
        begins = match.start() == 0 or text[:match.start()].endswith((". ", "! ", "? "))
        return word[:1].upper() + word[1:] if begins else word

    return re.sub(r"\{(\w+)\}", slot, text)
