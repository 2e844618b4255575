# One node. It takes Kafka's KAFKA_... variables (KAFKA_NUM_PARTITIONS is num.partitions) and CLUSTER_ID;
# data lies in /var/lib/kraft-wire, which is formatted at the first start.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY kraft_wire kraft_wire
RUN python -m venv /opt/kraft-wire && /opt/kraft-wire/bin/pip install --no-cache-dir --compile '.[fast]'

FROM python:3.13-slim
COPY --from=build /opt/kraft-wire /opt/kraft-wire
RUN useradd --system --home-dir /var/lib/kraft-wire --create-home kraft-wire
USER kraft-wire
WORKDIR /var/lib/kraft-wire
ENV PATH=/opt/kraft-wire/bin:$PATH \
    KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092 \
    KAFKA_LOG_DIRS=/var/lib/kraft-wire/data
VOLUME /var/lib/kraft-wire
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=2s --retries=5 \
    CMD ["kraft-wire", "topics", "list", "--bootstrap-server", "127.0.0.1:9092"]
ENTRYPOINT ["kraft-wire"]
CMD ["server"]
