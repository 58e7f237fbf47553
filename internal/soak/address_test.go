package soak

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestAddressIsBelowAssignedPorts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := chooseAddress(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "address"))
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
