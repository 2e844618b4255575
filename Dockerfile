# One node. It takes Kafka's KAFKA_... variables (KAFKA_NUM_PARTITIONS is num.partitions) and CLUSTER_ID;
# data lies in /var/lib/kraft-wire, which is formatted at the first start.
# Clients in other containers use HOSTNAME:19092, clients on this machine 127.0.0.1:9092, Prometheus 9404.
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY kraft_wire kraft_wire
RUN python -m venv /opt/kraft-wire && /opt/kraft-wire/bin/pip install --no-cache-dir --compile '.[fast]'

FROM ${BASE}
COPY --from=build /opt/kraft-wire /opt/kraft-wire
RUN useradd --system --home-dir /var/lib/kraft-wire --create-home kraft-wire
USER kraft-wire
WORKDIR /var/lib/kraft-wire
ENV PATH=/opt/kraft-wire/bin:$PATH \
    KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092,CONTAINERS://:19092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092 \
    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,CONTAINERS:PLAINTEXT,CONTROLLER:PLAINTEXT \
    KAFKA_METRICS_PORT=9404 \
    KAFKA_LOG_DIRS=/var/lib/kraft-wire/data
VOLUME /var/lib/kraft-wire
EXPOSE 9092 9404 19092
STOPSIGNAL SIGTERM
# Asks /ready without starting Python.
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=5 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9404 && printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q ' 200 ' <&3"]
ENTRYPOINT ["kraft-wire"]
CMD ["server"]
