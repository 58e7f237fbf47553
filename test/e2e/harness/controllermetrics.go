package harness

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

// ControllerMetrics returns the metrics of a controller at its secure port, which
// --authorization-always-allow-paths=/metrics opens to anonymous clients.
func (s *Session) ControllerMetrics(port int) string {
	s.T.Helper()
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", port),
		nil)
	s.Must(err, "make request")
	// The program creates its certificate at start, so clients cannot verify it.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(request)
	s.Must(err, "read metrics of the controller")
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.Must(err, "read metrics of the controller")
	if response.StatusCode != http.StatusOK {
		s.T.Fatalf("%s: %s", response.Status, body)
	}
	return string(body)
}
