/// A list of distinct values in ascending order, designed for a few hundred values.
///
/// Lookup is a binary search. For this size, shifting elements costs less than a tree would.
struct SortedList<Element: Comparable> {
  private var elements: [Element] = []

  var first: Element? { elements.first }

  /// Returns the smallest value that is not below `bound`.
  func first(from bound: Element) -> Element? {
    let place = place(of: bound)
    return place < elements.endIndex ? elements[place] : nil
  }

  /// Adds a value that is not in the list.
  mutating func insert(_ element: Element) {
    elements.insert(element, at: place(of: element))
  }

  /// Removes a value if it is in the list.
  mutating func remove(_ element: Element) {
    let place = place(of: element)
    if place < elements.endIndex, elements[place] == element { elements.remove(at: place) }
  }

  private func place(of element: Element) -> Int {
    guard let last = elements.last, element <= last else { return elements.endIndex }
    var (low, high) = (0, elements.count)
    while low < high {
      let middle = (low + high) / 2
      if elements[middle] < element { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
