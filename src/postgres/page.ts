/** Some of the rows that a walk comes by: those behind this key, in the order of their keys. */
export interface Page<Key> {
  after: Key
  limit: number
}
