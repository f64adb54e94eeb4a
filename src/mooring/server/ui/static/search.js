// What is found while somebody types.

export function showFound(input) {
  void input;
}
