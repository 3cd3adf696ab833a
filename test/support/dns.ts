import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { AUTHORITATIVE_ANSWER, decode, encode, type Question, TRUNCATED_RESPONSE } from 'dns-packet';

/** The addresses of a name; a type that is missing here is one without records. */
export interface DnsAddresses {
  readonly A?: readonly string[] | 'silence';
  readonly AAAA?: readonly string[] | 'silence';
  /** Seconds; 300 by default. */
  readonly ttl?: number;
}

/** How a name is answered: the strings of each TXT record, its addresses, or what is wrong with it. */
export type DnsAnswer =
  | readonly (readonly string[])[]
  | DnsAddresses
  | 'NXDOMAIN'
  | 'SERVFAIL'
  | 'REFUSED'
  /** Nothing is ever sent. */
  | 'silence'
  /** A datagram that is no DNS message, but for its id. */
  | 'garbage'
  /** Points to the name `target.test`, whose records come along. */
  | 'alias';

/** A DNS server on the loopback interface, over UDP and TCP. */
export interface DnsServer {
  /** IP address and port. */
  readonly address: string;
  /** What was asked, as `<transport> <type> <name>`. */
  readonly questions: string[];
  /** Sets or replaces the answer of a name. */
  set(name: string, answer: DnsAnswer): void;
  close(): Promise<void>;
}

/** Bytes that one datagram holds without extensions (RFC 1035, section 4.2.1). */
const DATAGRAM = 512;
const RCODES = { SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

/** Starts a server of these names; others do not exist. What does not fit into a datagram is truncated, and sent over TCP. */
export async function startDns(names: Readonly<Record<string, DnsAnswer>>): Promise<DnsServer> {
  const questions: string[] = [];
  const answers = new Map(Object.entries(names));
  const answer = (query: Buffer, transport: 'udp' | 'tcp'): Buffer | undefined => {
    const { id = 0, questions: [question] = [] } = decode(query);
    if (question === undefined) return undefined;
    questions.push(`${transport} ${question.type} ${question.name}`);
    return respond(id, question, answers.get(question.name.toLowerCase()) ?? 'NXDOMAIN', transport);
  };
  const udp = createSocket('udp4', (query, { port, address }) => {
    const response = answer(query, 'udp');
    if (response !== undefined) udp.send(response, port, address);
  });
  const tcp = createServer((socket) => answerStream(socket, (query) => answer(query, 'tcp')));
  const port = await bindBoth(udp, tcp);
  return {
    address: `127.0.0.1:${port}`,
    questions,
    set: (name, answer) => void answers.set(name, answer),
    close: async () => {
      udp.close();
      tcp.close();
      await once(tcp, 'close');
    },
  };
}

function respond(id: number, question: Question, answer: DnsAnswer, transport: 'udp' | 'tcp'): Buffer | undefined {
  if (answer === 'silence') return undefined;
  if (answer === 'garbage') return Buffer.concat([Buffer.from([id >> 8, id & 255]), Buffer.from('no DNS message')]);
  const head = { type: 'response' as const, id, questions: [question] };
  if (answer === 'NXDOMAIN' || answer === 'SERVFAIL' || answer === 'REFUSED') {
    return encode({ ...head, flags: RCODES[answer] });
  }
  const answers =
    typeof answer === 'object' && !isTexts(answer) ? addresses(question, answer) : texts(question, answer);
  if (answers === undefined) return undefined;
  const response = encode({ ...head, flags: AUTHORITATIVE_ANSWER, answers });
  const fits = transport === 'tcp' || response.length <= DATAGRAM;
  return fits ? response : encode({ ...head, flags: AUTHORITATIVE_ANSWER | TRUNCATED_RESPONSE });
}

function isTexts(answer: DnsAddresses | readonly (readonly string[])[]): answer is readonly (readonly string[])[] {
  return Array.isArray(answer);
}

/** Undefined for a type that is not answered. */
function addresses({ name, type }: Question, answer: DnsAddresses) {
  const list = type === 'A' || type === 'AAAA' ? (answer[type] ?? []) : [];
  if (list === 'silence') return undefined;
  return list.map((data) => ({
    type: type === 'A' ? ('A' as const) : ('AAAA' as const),
    name,
    ttl: answer.ttl ?? 300,
    data,
  }));
}

function texts({ name }: Question, answer: 'alias' | readonly (readonly string[])[]) {
  const txt = (owner: string, strings: readonly string[]) => ({
    type: 'TXT' as const,
    name: owner,
    ttl: 300,
    data: [...strings],
  });
  if (answer !== 'alias') return answer.map((strings) => txt(name, strings));
  const alias = { type: 'CNAME' as const, name, ttl: 300, data: 'target.test' };
  return [alias, txt('target.test', ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8'])];
}

/** Over TCP each message has its length in front (RFC 1035, section 4.2.2). */
function answerStream(socket: Socket, answer: (query: Buffer) => Buffer | undefined): void {
  let received = Buffer.alloc(0);
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
    const response = answer(received.subarray(2, 2 + received.readUInt16BE(0)));
    if (response === undefined) return;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(response.length);
    socket.end(Buffer.concat([length, response]));
  });
}

/** One port for both; the system gives one that is free for TCP, whose ports are the scarcer ones. */
async function bindBoth(udp: ReturnType<typeof createSocket>, tcp: Server): Promise<number> {
  tcp.listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const { port } = tcp.address() as AddressInfo;
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');
  return port;
}
