/** Every state that a webhook delivery can be in, declared once. */
export const deliveryStates = {
  pending: { isEnded: false, meaning: 'is due at its time, or is being sent' },
  delivered: { isEnded: true, meaning: 'the receiver took it' },
  dead: { isEnded: true, meaning: 'given up, refused for good, or its endpoint is switched off; it can be replayed' },
} as const satisfies Record<string, { isEnded: boolean; meaning: string }>

/** The state of a delivery. */
export type DeliveryState = keyof typeof deliveryStates

/** All delivery states. */
export const allDeliveryStates = Object.keys(deliveryStates) as DeliveryState[]

/** Whether a string from outside is a delivery state. */
export function isDeliveryState(word: string): word is DeliveryState {
  return Object.hasOwn(deliveryStates, word)
}
