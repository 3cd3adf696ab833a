import { composeSchema } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';
import { print } from '../../service/terminal.ts';

/** Prints the JSON Schema that editors can check a config file against. */
export async function printSchema(): Promise<number> {
  await print(`${JSON.stringify(composeSchema(definitions()), undefined, 2)}\n`);
  return 0;
}
