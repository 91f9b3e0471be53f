import FirestoreProtos
import SwiftProtobuf

/// The stored users of Psst and the contacts of one trainer, the same in each run.
///
/// Users are numbered from 0. Their ids do not follow their numbers, as those of Firebase Auth do
/// not follow the sign-ups.
enum People {
  /// The fields of a document.
  typealias Fields = [FieldName: Google_Firestore_V1_Value]

  static let trainer = "trainer"
  static let users = 100_000
  static let contacts = 1000

  /// The length of the ids that Firebase Auth makes.
  private static let uidLength = 28
  /// The time of the first sign-up, in seconds.
  private static let seconds: Int64 = 1_700_000_000

  // MARK: Users

  /// Returns the number of the user behind one of the contacts, of which 0 is the oldest.
  static func user(ofContact number: Int) -> Int { number * (users / contacts) }

  static func uid(_ user: Int) -> String {
    var random = random(user)
    return String((0..<uidLength).map { _ in pick(uidCharacters, &random) })
  }

  static func email(_ user: Int) -> String {
    let (first, last, _) = name(user)
    return "\(first.inEmail).\(last.inEmail).\(user)@example.com"
  }

  /// Returns the given name, which many users share.
  static func givenName(_ user: Int) -> String { name(user).first.shown }

  private static func displayName(_ user: Int) -> String {
    let (first, last, script) = name(user)
    return script.hasFamilyNameFirst
      ? last.shown + script.separator + first.shown
      : first.shown + script.separator + last.shown
  }

  private static func name(_ user: Int) -> (first: Name, last: Name, script: Script) {
    // The streams below the number of users are those of the ids.
    var random = random(users + user)
    let script = pick(scripts, &random)
    return (pick(script.first, &random), pick(script.last, &random), script)
  }

  /// Returns one of many generators, which have no numbers in common for as long as an id.
  private static func random(_ stream: Int) -> SplitMix64 {
    SplitMix64(seed: UInt64(stream * uidLength))
  }

  private static func pick<Element>(_ list: [Element], _ random: inout SplitMix64) -> Element {
    list[Int(random.next() % UInt64(list.count))]
  }

  // MARK: Documents

  /// Stores the trainer, the users and the contacts; requires an administrator.
  static func store(in firestore: FirestoreLoad) async throws {
    try await firestore.create(
      at: "users/\(trainer)",
      userFields(uid: trainer, "trainer@example.com", "Toni Trainer", role: "trainer", number: 0)
    )
    try await store(users, in: firestore) { user in
      (
        "users/\(uid(user))",
        userFields(
          uid: uid(user),
          email(user),
          displayName(user),
          role: "client",
          number: user
        )
      )
    }
    try await store(contacts, in: firestore) { number in
      let user = user(ofContact: number)
      return (
        "contacts/\(trainer)/clients/\(uid(user))",
        [
          "id": text(uid(user)), "clientId": text(uid(user)),
          "displayName": text(displayName(user)), "email": text(email(user)),
          "addedAt": time(users + number), "source": text("trainer"),
        ]
      )
    }
  }

  private static func store(
    _ count: Int,
    in firestore: FirestoreLoad,
    _ document: (_ number: Int) -> (path: String, fields: Fields)
  ) async throws {
    for start in stride(from: 0, to: count, by: FirestoreLoad.writesInCommit) {
      let end = min(start + FirestoreLoad.writesInCommit, count)
      try await firestore.commit(
        (start..<end).map { number in
          let (path, fields) = document(number)
          return firestore.create(path, fields)
        }
      )
    }
  }

  private static func userFields(
    uid: String,
    _ email: String,
    _ displayName: String,
    role: String,
    number: Int
  ) -> Fields {
    [
      "id": text(uid), "uid": text(uid), "email": text(email), "displayName": text(displayName),
      "role": text(role), "createdAt": time(number), "updatedAt": time(number),
    ]
  }

  private static func text(_ text: String) -> Google_Firestore_V1_Value {
    .with { $0.stringValue = text }
  }

  /// Returns times that are a second apart.
  private static func time(_ number: Int) -> Google_Firestore_V1_Value {
    .with { $0.timestampValue.seconds = seconds + Int64(number) }
  }

  // MARK: Names

  /// A given name or a family name.
  private struct Name: Sendable {
    /// The name as it is shown.
    var shown: String
    /// The name in an email address.
    var inEmail: String

    init(_ shown: String, _ inEmail: String) {
      self.shown = shown
      self.inEmail = inEmail
    }
  }

  /// The names of people who write in one script.
  private struct Script: Sendable {
    var first: [Name]
    var last: [Name]
    var hasFamilyNameFirst = false
    var separator = " "
  }

  private static let uidCharacters = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  )

  private static let scripts = [latin, cyrillic, greek, arabic, devanagari, han, kana, hangul]

  private static let latin = Script(
    first: [
      Name("Anna", "anna"), Name("José", "jose"), Name("Zoë", "zoe"), Name("Łukasz", "lukasz"),
      Name("Chloé", "chloe"), Name("Søren", "soren"), Name("Jürgen", "juergen"),
      Name("Mary-Jane", "mary-jane"),
    ],
    last: [
      Name("Smith", "smith"), Name("García", "garcia"), Name("Müller", "mueller"),
      Name("Nowak", "nowak"), Name("Øberg", "oberg"), Name("O’Connor", "oconnor"),
      Name("Dubois", "dubois"), Name("Nguyễn", "nguyen"),
    ]
  )
  private static let cyrillic = Script(
    first: [
      Name("Олена", "olena"), Name("Дмитро", "dmytro"), Name("Ірина", "iryna"),
      Name("Сергій", "serhii"),
    ],
    last: [
      Name("Шевченко", "shevchenko"), Name("Коваленко", "kovalenko"),
      Name("Бондаренко", "bondarenko"), Name("Кравчук", "kravchuk"),
    ]
  )
  private static let greek = Script(
    first: [
      Name("Μαρία", "maria"), Name("Γιώργος", "giorgos"), Name("Ελένη", "eleni"),
      Name("Νίκος", "nikos"),
    ],
    last: [
      Name("Νικολάου", "nikolaou"), Name("Γεωργίου", "georgiou"), Name("Ιωάννου", "ioannou"),
      Name("Παύλου", "pavlou"),
    ]
  )
  private static let arabic = Script(
    first: [
      Name("محمد", "mohamed"), Name("فاطمة", "fatima"), Name("يوسف", "yousef"),
      Name("ليلى", "layla"),
    ],
    last: [
      Name("حداد", "haddad"), Name("خوري", "khoury"), Name("منصور", "mansour"),
      Name("نجار", "najjar"),
    ]
  )
  private static let devanagari = Script(
    first: [
      Name("प्रिया", "priya"), Name("राहुल", "rahul"), Name("अनीता", "anita"),
      Name("विक्रम", "vikram"),
    ],
    last: [
      Name("शर्मा", "sharma"), Name("वर्मा", "verma"), Name("पटेल", "patel"),
      Name("गुप्ता", "gupta"),
    ]
  )
  private static let han = Script(
    first: [Name("伟", "wei"), Name("芳", "fang"), Name("秀英", "xiuying"), Name("强", "qiang")],
    last: [Name("王", "wang"), Name("李", "li"), Name("张", "zhang"), Name("陈", "chen")],
    hasFamilyNameFirst: true,
    separator: ""
  )
  private static let kana = Script(
    first: [
      Name("さくら", "sakura"), Name("ひなた", "hinata"), Name("れん", "ren"),
      Name("ケンジ", "kenji"),
    ],
    last: [Name("佐藤", "sato"), Name("鈴木", "suzuki"), Name("田中", "tanaka")],
    hasFamilyNameFirst: true
  )
  private static let hangul = Script(
    first: [
      Name("민준", "minjun"), Name("서연", "seoyeon"), Name("지우", "jiwoo"), Name("하준", "hajun"),
    ],
    last: [Name("김", "kim"), Name("이", "lee"), Name("박", "park"), Name("최", "choi")],
    hasFamilyNameFirst: true,
    separator: ""
  )
}
