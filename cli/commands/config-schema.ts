import { composeSchema } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';
import { print } from '../../service/terminal.ts';

/** Prints the JSON Schema of the config file, for editors. */
export async function printSchema(): Promise<void> {
  await print(`${JSON.stringify(composeSchema(definitions()), undefined, 2)}\n`);
}
