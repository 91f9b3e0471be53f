/// The features that can be switched on for some of the users.
public enum FeatureFlag: String, Sendable, Hashable, CaseIterable {
  case personalTrainer = "personal_trainer_enabled"
  case workoutSync = "cms_workout_sync_enabled"
  case trainerChat = "trainer_chat_enabled"
  /// A trainer and a client need a contact to begin a chat.
  case relationshipValidation = "relationship_validation_enabled"
}

/// A source of feature flags, asked each time a flag matters.
public protocol FeatureFlagSource: Sendable {
  /// Returns true if a flag is on for a user; off by default.
  ///
  /// Throws if the flags cannot be read now.
  func isOn(_ flag: FeatureFlag, for uid: String) async throws -> Bool
}
