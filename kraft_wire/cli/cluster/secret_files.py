"""Where a secured cluster keeps its certificates, and the settings of its users."""

from pathlib import Path

__all__ = ["SecretFiles"]


class SecretFiles:
    """Files in a cluster's directory; all but the authority's certificate hold a secret."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def certificate(self, node_id: int) -> Path:
        """The node's key and certificate."""
        return self._directory / f"node-{node_id}.pem"

    @property
    def authority(self) -> Path:
        """The certificate that nodes and clients trust."""
        return self._directory / "authority.pem"

    @property
    def admin_config(self) -> Path:
        """Client settings of the user `admin`."""
        return self._directory / "admin.properties"

    @property
    def client_config(self) -> Path:
        """Client settings of the user `client`."""
        return self._directory / "client.properties"
