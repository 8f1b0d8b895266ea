/** Zod with OpenAPI support. All schemas of this room import it from here, so that none is made before it is extended. */
import { extendZodWithOpenApi } from '@asteasolutions/zod-to-openapi'
import { z } from 'zod'

extendZodWithOpenApi(z)

export { z }
