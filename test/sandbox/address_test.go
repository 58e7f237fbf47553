package sandbox

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestAddressIsBelowAssignedPorts(t *testing.T) {
	dir := t.TempDir()
	if err := ChooseAddress(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "data", "address"))
	if err != nil {
		t.Fatal(err)
	}
	address, err := netip.ParseAddrPort(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if port := address.Port(); !address.Addr().IsLoopback() || port < firstPort || port >= lastPort {
		t.Errorf("the address is %s", address)
	}
}
