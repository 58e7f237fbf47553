package csi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddressIsUnixSocket(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"/csi/csi.sock":        "unix:///csi/csi.sock",
		"//csi//csi.sock":      "unix:///csi/csi.sock",
		"csi.sock":             "unix://" + filepath.Join(here, "csi.sock"),
		"unix:///csi/csi.sock": "unix:///csi/csi.sock",
		"unix:/csi/csi.sock":   "unix:///csi/csi.sock",
		"unix://csi.sock":      "unix://" + filepath.Join(here, "csi.sock"),
	} {
		if address, err := addressOf(given); err != nil || address != want {
			t.Errorf("addressOf(%q) = %s, %v, want %s", given, address, err, want)
		}
	}
	for _, given := range []string{"", "unix://", "unix:", "tcp://127.0.0.1:1", "dns:///driver:80", "http://driver"} {
		if address, err := addressOf(given); err == nil || !strings.Contains(err.Error(), "--csi-address") ||
			!strings.Contains(err.Error(), "socket") {
			t.Errorf("addressOf(%q) = %s, %v, want an error", given, address, err)
		}
	}
}
