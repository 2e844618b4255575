// A Kafka for tests of Node.js: one process, its data in memory. Needs `kraft-wire` on the PATH.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export class Kafka {
  // Start a node, and wait until it serves.
  static async start() {
    const kafka = new Kafka();
    kafka.directory = mkdtempSync(join(tmpdir(), "kraft-wire-"));
    const ready = join(kafka.directory, "ready.json");
    const listen = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"];
    const options = ["server", "--ephemeral", ...listen, "--ready-file", ready];
    kafka.process = spawn("kraft-wire", options, { stdio: "ignore" });
    while (!existsSync(ready)) {
      if (kafka.process.exitCode !== null) throw new Error("kraft-wire has ended");
      await sleep(5);
    }
    const facts = JSON.parse(readFileSync(ready, "utf8"));
    kafka.bootstrapServers = facts.listeners.PLAINTEXT;
    kafka.rules = `http://${facts.control}/rules`;
    return kafka;
  }

  // Add a fault rule (docs/FAULTS.md), and return it with its number.
  async inject(rule) {
    const response = await fetch(this.rules, { method: "POST", body: JSON.stringify(rule) });
    const added = await response.json();
    if (!response.ok) throw new Error(added.error);
    return added[0];
  }

  // Return how often a rule has fired, once it has, or after some seconds.
  async fired(rule, seconds = 10) {
    const response = await fetch(`${this.rules}/${rule.number}?wait=${seconds}`);
    return (await response.json()).fired;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
    rmSync(this.directory, { recursive: true });
  }
}
