package csimock

import "testing"

func TestSocketPath(t *testing.T) {
	for endpoint, want := range map[string]string{
		"/run/csi.sock": "/run/csi.sock", "unix:///run/csi.sock": "/run/csi.sock", "unix:/run/csi.sock": "/run/csi.sock",
		"csi.sock": "csi.sock", "unix:csi.sock": "csi.sock", "": "", "unix://": "", "tcp://localhost:1": "",
	} {
		got, err := socketPath(endpoint)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("socketPath(%q) = %q (%v), want %q", endpoint, got, err, want)
		}
	}
}
