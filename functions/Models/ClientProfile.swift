public import FirestoreClient

/// The facts that a trainer has about a client.
///
/// The profile is stored at `clientProfiles/{trainerId}/clients/{clientId}`.
public struct ClientProfile: StoredDocument, Hashable {
  /// The client's uid, which is also the document's id.
  public var clientId: String
  /// The uid of the trainer who owns the profile.
  public var trainerId: String
  /// Injuries and the limits that they set.
  public var injuries: [ProfileItem] = []
  /// The goals of the client.
  public var goals: [ProfileItem] = []
  /// The equipment to train with.
  public var equipment: [ProfileItem] = []
  /// The client's preferences for training.
  public var preferences: [ProfileItem] = []
  /// The times and places of the client's absences.
  public var travel: [ProfileItem] = []
  /// The client's worries and burdens.
  public var stressFactors: [ProfileItem] = []
  /// The number of items in the six lists.
  public var totalItems = 0
  /// The time at which the profile was first stored; nil until then.
  public var createdAt: Timestamp?
  /// The time at which the profile was last stored; nil until then.
  public var updatedAt: Timestamp?
  /// The time at which the trainer last reviewed the profile.
  public var lastReviewedAt: Timestamp?
  /// The ids of items that the trainer removed, the latest last.
  ///
  /// Their messages do not add them again.
  public var removedItemIds: [String] = []
  /// The items and fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []
  /// The unreadable items, which stay unchanged in their lists.
  private var unreadableItems: [ProfileCategory: [FirestoreValue]] = [:]

  /// Creates a profile without items.
  public init(clientId: String, trainerId: String) {
    self.clientId = clientId
    self.trainerId = trainerId
  }

  /// Decodes a stored profile; a missing list is empty.
  ///
  /// Throws if the id of the client or the trainer is missing.
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

  /// Returns a category's list for storage: its items, then the unreadable ones.
  public func stored(_ category: ProfileCategory) -> FieldValue {
    let unreadable = unreadableItems[category] ?? []
    return .value(self[category].map(Entry.readable) + unreadable.map { .unreadable($0, nil) })
  }

  /// The number of items in the lists, including those that could not be read.
  public var itemsCount: Int {
    ProfileCategory.allCases.reduce(0) { sum, category in
      sum + self[category].count + (unreadableItems[category]?.count ?? 0)
    }
  }

  /// An element of a stored list.
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

  /// The name of the collection of trainers' profiles.
  ///
  /// A trainer's profiles are below the trainer's id, where no document exists.
  public static let collection = "clientProfiles"
  /// The name of the collection of profiles below a trainer's id.
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
