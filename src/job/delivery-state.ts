/** Every state that a webhook delivery can be in, declared once. */
export const deliveryStates = {
  pending: { isEnded: false, meaning: 'waiting to be sent, or being sent' },
  delivered: { isEnded: true, meaning: 'the receiver accepted it' },
  dead: { isEnded: true, meaning: 'given up, permanently rejected, or its endpoint is disabled; can be replayed' },
} as const satisfies Record<string, { isEnded: boolean; meaning: string }>

/** The state of a delivery. */
export type DeliveryState = keyof typeof deliveryStates

/** All delivery states. */
export const allDeliveryStates = Object.keys(deliveryStates) as DeliveryState[]

/** Whether a string from outside is a delivery state. */
export function isDeliveryState(word: string): word is DeliveryState {
  return Object.hasOwn(deliveryStates, word)
}
