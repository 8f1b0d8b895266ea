import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { BulkOrder } from './orders.ts'

/** Carries out an order about bulk operations or queues. Each can be carried out twice, because a response can be lost. */
export async function carryOutInBulk(hf: Holdfast, order: BulkOrder): Promise<string[]> {
  switch (order.do) {
    case 'bulk':
      return [(await hf.bulk.start({ ...order.request, id: order.id })).id]
    case 'stop-bulk':
      await hf.bulk.stop(order.id).catch((error) => {
        if (!(error instanceof HoldfastError && error.code === 'bulk_ended')) throw error
      })
      return []
    case 'hold-queue':
      await hf.pauseQueue(order.queue)
      return []
    case 'free-queue':
      await hf.resumeQueue(order.queue)
      return []
  }
}
