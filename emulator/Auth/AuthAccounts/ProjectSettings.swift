/// The settings of sign-in, in the form of Firebase's `config.json`.
///
/// A member that is missing has the emulator's default, which is false.
package struct ProjectSettings: Codable, Sendable, Hashable {
  package var signIn: SignIn
  package var emailPrivacyConfig: EmailPrivacy

  package init(signIn: SignIn = SignIn(), emailPrivacyConfig: EmailPrivacy = EmailPrivacy()) {
    self.signIn = signIn
    self.emailPrivacyConfig = emailPrivacyConfig
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    signIn = try container.decodeIfPresent(SignIn.self, forKey: .signIn) ?? SignIn()
    emailPrivacyConfig =
      try container.decodeIfPresent(EmailPrivacy.self, forKey: .emailPrivacyConfig)
      ?? EmailPrivacy()
  }

  package struct SignIn: Codable, Sendable, Hashable {
    /// True if users of several identity providers may have the same address.
    package var allowDuplicateEmails: Bool?

    package init(allowDuplicateEmails: Bool? = false) {
      self.allowDuplicateEmails = allowDuplicateEmails
    }
  }

  package struct EmailPrivacy: Codable, Sendable, Hashable {
    /// True if responses do not show which addresses have accounts.
    package var enableImprovedEmailPrivacy: Bool?

    package init(enableImprovedEmailPrivacy: Bool? = false) {
      self.enableImprovedEmailPrivacy = enableImprovedEmailPrivacy
    }
  }

  /// True if an address belongs to at most one account, whatever its provider.
  package var hasOneAccountPerEmail: Bool { !(signIn.allowDuplicateEmails ?? false) }
  /// True if responses do not show which addresses have accounts.
  package var hidesAccounts: Bool { emailPrivacyConfig.enableImprovedEmailPrivacy ?? false }

  /// Sets the members that a partial update names and leaves the others.
  package mutating func merge(_ update: ProjectSettings.Update) {
    if let flag = update.signIn?.allowDuplicateEmails { signIn.allowDuplicateEmails = flag }
    if let flag = update.emailPrivacyConfig?.enableImprovedEmailPrivacy {
      emailPrivacyConfig.enableImprovedEmailPrivacy = flag
    }
  }

  /// A partial update of the settings.
  package struct Update: Decodable, Sendable {
    package var signIn: SignIn?
    package var emailPrivacyConfig: EmailPrivacy?
  }
}
