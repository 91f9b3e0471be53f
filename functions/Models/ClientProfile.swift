public import FirestoreClient

/// What is known of a client, `clientProfiles/{clientId}`.
public struct ClientProfile: Codable, Sendable, Hashable {
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

  /// A profile without items.
  public init(clientId: String, trainerId: String) {
    self.clientId = clientId
    self.trainerId = trainerId
  }

  /// Reads a stored profile; a missing list is empty.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    clientId = try container.decode(String.self, forKey: .clientId)
    trainerId = try container.decode(String.self, forKey: .trainerId)
    totalItems = try container.decodeIfPresent(Int.self, forKey: .totalItems) ?? 0
    createdAt = try container.decodeIfPresent(Timestamp.self, forKey: .createdAt)
    updatedAt = try container.decodeIfPresent(Timestamp.self, forKey: .updatedAt)
    lastReviewedAt = try container.decodeIfPresent(Timestamp.self, forKey: .lastReviewedAt)
    for category in ProfileCategory.allCases {
      guard let key = CodingKeys(stringValue: category.rawValue) else { continue }
      self[category] = try container.decodeIfPresent([ProfileItem].self, forKey: key) ?? []
    }
  }

  /// The items of one category.
  public subscript(category: ProfileCategory) -> [ProfileItem] {
    get { self[keyPath: category.list] }
    set { self[keyPath: category.list] = newValue }
  }

  /// Where profiles are stored.
  public static let collection = "clientProfiles"
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
