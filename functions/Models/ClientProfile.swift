public import FirestoreClient

/// What a trainer has learned of a client, `clientProfiles/{trainerId}/clients/{clientId}`.
public struct ClientProfile: StoredDocument, Hashable {
  /// The client's uid; also the document's id.
  public var clientId: String
  /// The trainer that the profile belongs to.
  public var trainerId: String
  /// Injuries, and what must be spared.
  public var injuries: [ProfileItem] = []
  /// The goals of the client.
  public var goals: [ProfileItem] = []
  /// The equipment to train with.
  public var equipment: [ProfileItem] = []
  /// How the client likes to train.
  public var preferences: [ProfileItem] = []
  /// When and where the client is away.
  public var travel: [ProfileItem] = []
  /// The client's worries and burdens.
  public var stressFactors: [ProfileItem] = []
  /// How many items the six lists have together.
  public var totalItems = 0
  /// When the profile was stored first; nil until then.
  public var createdAt: Timestamp?
  /// When the profile was stored last; nil until then.
  public var updatedAt: Timestamp?
  /// When the trainer last looked through it.
  public var lastReviewedAt: Timestamp?
  /// The ids of items that the trainer removed, the latest last; their messages never bring them
  /// back.
  public var removedItemIds: [String] = []
  /// The items and fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []
  /// The items that could not be read, which stay in their lists as they are.
  private var unreadableItems: [ProfileCategory: [FirestoreValue]] = [:]

  /// A profile without items.
  public init(clientId: String, trainerId: String) {
    self.clientId = clientId
    self.trainerId = trainerId
  }

  /// Reads a stored profile; a missing list is empty.
  ///
  /// Throws when it does not say whose profile it is.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    clientId = try fields.container.decode(String.self, forKey: .clientId)
    trainerId = try fields.container.decode(String.self, forKey: .trainerId)
    totalItems = try fields.optional(.totalItems) ?? 0
    createdAt = try fields.optional(.createdAt)
    updatedAt = try fields.optional(.updatedAt)
    lastReviewedAt = try fields.optional(.lastReviewedAt)
    removedItemIds = try fields.optionalElements(.removedItemIds)
    for category in ProfileCategory.allCases {
      guard let key = CodingKeys(stringValue: category.rawValue) else { continue }
      let entries: [Entry] = try fields.optionalElements(key)
      self[category] = entries.compactMap(\.item)
      let others = entries.compactMap(\.unreadable)
      if !others.isEmpty { unreadableItems[category] = others }
      for case .unreadable(_, let error) in entries { fields.report(error) }
    }
    unreadable = fields.unreadable
  }

  /// The items of one category.
  public subscript(category: ProfileCategory) -> [ProfileItem] {
    get { self[keyPath: category.list] }
    set { self[keyPath: category.list] = newValue }
  }

  /// A category's list as it is stored: its items, and behind them those that could not be read.
  public func stored(_ category: ProfileCategory) -> FieldValue {
    let unreadable = unreadableItems[category] ?? []
    return .value(self[category].map(Entry.readable) + unreadable.map { .unreadable($0, nil) })
  }

  /// How many items the lists have, also those that could not be read.
  public var itemsCount: Int {
    ProfileCategory.allCases.reduce(0) { sum, category in
      sum + self[category].count + (unreadableItems[category]?.count ?? 0)
    }
  }

  /// An element of a list.
  private enum Entry: Codable {
    case readable(ProfileItem)
    case unreadable(FirestoreValue, ValueCodingError?)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      switch try container.decode(Lenient<ProfileItem>.self) {
      case .readable(let item): self = .readable(item)
      case .unreadable(let error):
        self = .unreadable(try container.decode(FirestoreValue.self), error)
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .readable(let item): try container.encode(item)
      case .unreadable(let value, _): try container.encode(value)
      }
    }

    var item: ProfileItem? { if case .readable(let item) = self { item } else { nil } }
    var unreadable: FirestoreValue? {
      if case .unreadable(let value, _) = self { value } else { nil }
    }
  }

  /// The collection of trainers' profiles; each trainer has a place there, but no document.
  public static let collection = "clientProfiles"
  /// Where a trainer's profiles are stored, below the trainer's place.
  public static let clients = "clients"

  private enum CodingKeys: String, CodingKey {
    case clientId, trainerId, injuries, goals, equipment, preferences, travel, stressFactors
    case totalItems, createdAt, updatedAt, lastReviewedAt, removedItemIds
  }
}

extension ProfileCategory {
  fileprivate var list: WritableKeyPath<ClientProfile, [ProfileItem]> {
    switch self {
    case .injuries: \.injuries
    case .goals: \.goals
    case .equipment: \.equipment
    case .preferences: \.preferences
    case .travel: \.travel
    case .stressFactors: \.stressFactors
    }
  }
}
