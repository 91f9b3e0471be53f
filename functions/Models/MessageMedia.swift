/// An image attached to a message, whose object is in Cloud Storage.
public struct MessageMedia: Codable, Sendable, Hashable {
  /// The address of the image.
  public var url: String
  /// The address of a small version; nil until it exists.
  public var thumbnailURL: String?
  /// The size in bytes; nil if unknown.
  public var size: Int?
  /// The width and height; nil if unknown.
  public var dimensions: MediaDimensions?

  /// Creates a description of an uploaded image.
  public init(
    url: String,
    thumbnailURL: String? = nil,
    size: Int? = nil,
    dimensions: MediaDimensions? = nil
  ) {
    self.url = url
    self.thumbnailURL = thumbnailURL
    self.size = size
    self.dimensions = dimensions
  }

  /// The value of `mediaType` in messages with an image.
  public static let type = "image"
}

/// The size of an image in pixels.
public struct MediaDimensions: Codable, Sendable, Hashable {
  /// The width in pixels.
  public var width: Double
  /// The height in pixels.
  public var height: Double

  /// Creates a size in pixels.
  public init(width: Double, height: Double) {
    self.width = width
    self.height = height
  }
}
