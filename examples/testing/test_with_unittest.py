"""The same with unittest, without any plugin: python -m unittest in this directory."""

import unittest

from confluent_kafka import Producer

from kraft_wire.testing import Cluster


class OrdersTest(unittest.TestCase):
    """One cluster for the class, emptied before each test."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(topics=["orders"]))

    def setUp(self):
        self.cluster.reset()

    def test_first_order_has_offset_0(self):
        self.assertEqual(self._offset_of_an_order(), 0)

    def test_so_has_the_first_of_the_next_test(self):
        self.assertEqual(self._offset_of_an_order(), 0)

    def _offset_of_an_order(self):
        offsets = []
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers})
        producer.produce("orders", "book", on_delivery=lambda _, message: offsets.append(message))
        producer.flush(30)
        return offsets[0].offset()


if __name__ == "__main__":
    unittest.main()
