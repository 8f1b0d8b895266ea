import { expect, test } from 'vitest'
import { Lanes } from './lanes.ts'

const wide = { most: 512, mostPerTenant: 512 }

function roomOf(lanes: Lanes, name: string): number {
  const room = lanes.room()
  const index = room.lanes.indexOf(name)
  return index === -1 ? room.most : (room.mosts[index] as number)
}

function tenantRoomOf(lanes: Lanes, name: string): number {
  const room = lanes.room()
  const index = room.tenants.indexOf(name)
  return index === -1 ? room.tenantMost : (room.tenantMosts[index] as number)
}

function beginMany(lanes: Lanes, tenant: string, count: number): void {
  for (let n = 0; n < count; n++) lanes.begin(tenant, `lane-${n}`)
}

/** Lets each of these tenants claim as long as it has room, in turn. */
function fill(lanes: Lanes, tenants: string[]): Map<string, number> {
  const taken = new Map(tenants.map((tenant) => [tenant, 0]))
  while (tenants.some((tenant) => lanes.hasRoom(tenant)))
    for (const tenant of tenants) {
      if (!lanes.hasRoom(tenant)) continue
      lanes.begin(tenant, `lane-${taken.get(tenant)}`)
      taken.set(tenant, (taken.get(tenant) ?? 0) + 1)
    }
  return taken
}

test('a lane that was never heard of gets two at a time', () => {
  const lanes = new Lanes(wide)
  expect(roomOf(lanes, 'new')).toBe(2)
  lanes.begin('acme', 'new')
  expect(roomOf(lanes, 'new')).toBe(1)
})

test('a fast lane gets more, and a slow one two', () => {
  const lanes = new Lanes(wide)
  for (const [name, ms] of [['fast', 20] as const, ['slow', 2_000] as const]) {
    lanes.begin('acme', name)
    lanes.end('acme', name, ms)
  }
  expect(roomOf(lanes, 'fast')).toBe(16)
  expect(roomOf(lanes, 'slow')).toBe(2)
})

test('slow lanes together never take all that their tenant may have', () => {
  const lanes = new Lanes({ most: 100, mostPerTenant: 40 })
  for (let n = 0; n < 30; n++) {
    lanes.begin('acme', `slow-${n}`)
    lanes.end('acme', `slow-${n}`, 5_000)
    lanes.begin('acme', `slow-${n}`)
  }
  expect(lanes.room()).toMatchObject({ tenants: ['acme'], tenantMosts: [10], tenantSlowMosts: [0] })
  // nor do those that were never heard of
  const fresh = new Lanes({ most: 100, mostPerTenant: 40 })
  beginMany(fresh, 'acme', 30)
  expect(fresh.room()).toMatchObject({ tenants: ['acme'], tenantMosts: [10], tenantSlowMosts: [0] })
})

test('a lane that became fast is given more', () => {
  const lanes = new Lanes({ most: 10, mostPerTenant: 10 })
  for (const ms of [5_000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]) {
    lanes.begin('acme', 'repaired')
    lanes.end('acme', 'repaired', ms)
  }
  expect(roomOf(lanes, 'repaired')).toBeGreaterThan(10)
})

test('receivers of the same origin are lanes of their own for each tenant', () => {
  const lanes = new Lanes(wide)
  lanes.begin('acme', 'https://hooks.example.com')
  const { laneTenants, lanes: names } = lanes.room()
  expect([laneTenants, names]).toEqual([['acme'], ['https://hooks.example.com']])
})

test('a tenant gets no more than its limit', () => {
  const lanes = new Lanes({ most: 512, mostPerTenant: 10 })
  beginMany(lanes, 'acme', 10)
  expect(lanes.hasRoom('acme')).toBe(false)
  expect(tenantRoomOf(lanes, 'acme')).toBe(0)
  expect(tenantRoomOf(lanes, 'other')).toBe(10)
  lanes.end('acme', 'lane-0', 5)
  expect(tenantRoomOf(lanes, 'acme')).toBe(1)
})

test.each([1, 2, 5, 20, 100])('%i tenants that take all they can leave the next one as much as each has', (count) => {
  const lanes = new Lanes(wide)
  const taken = fill(
    lanes,
    Array.from({ length: count }, (_, n) => `tenant-${n}`),
  )
  const most = Math.max(...taken.values())
  expect(tenantRoomOf(lanes, 'next')).toBeGreaterThanOrEqual(most - 1)
  expect(Math.min(...taken.values())).toBeGreaterThanOrEqual(most - 1)
})

test('one claim never takes all that is free', () => {
  const lanes = new Lanes(wide)
  expect(lanes.room().limit).toBe(256)
  beginMany(lanes, 'acme', 200)
  expect(lanes.room().limit).toBe(156)
})

test('what has ended leaves no tenant behind', () => {
  const lanes = new Lanes(wide)
  lanes.begin('acme', 'lane')
  lanes.end('acme', 'lane', null)
  expect(lanes.size).toBe(0)
  expect(lanes.room()).toMatchObject({ tenants: [], lanes: [] })
})
