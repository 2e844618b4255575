// node --test; a bare socket stands for the client of your choice.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";

import { Kafka } from "./kraft_wire.mjs";

let kafka;
before(async () => (kafka = await Kafka.start()));
after(() => kafka.stop());

// Send ApiVersions version 0, and return the error code, or null where the connection ends.
function apiVersions() {
  const [host, port] = kafka.bootstrapServers.split(":");
  const frame = Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff]);
  return new Promise((resolve) => {
    const socket = connect(Number(port), host, () => socket.write(frame));
    socket.once("data", (data) => (resolve(data.readInt16BE(8)), socket.end()));
    socket.once("close", () => resolve(null));
  });
}

test("the node answers", async () => {
  assert.equal(await apiVersions(), 0);
});

test("a fault is injected once, and tells that it was", async () => {
  const rule = await kafka.inject({ disconnect: true, api: "ApiVersions", when: "once" });
  assert.equal(await apiVersions(), null);
  assert.equal(await kafka.fired(rule), 1);
  assert.equal(await apiVersions(), 0);
});
