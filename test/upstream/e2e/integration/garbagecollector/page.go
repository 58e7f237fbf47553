package garbagecollector

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	graphPath = "/debug/controllers/garbagecollector/graph"
	// allowedPaths are what the program serves to everybody.
	allowedPaths = "/readyz,/metrics," + graphPath
	// readyMetric is 0 once all kinds are in the graph.
	unreadMetric = "\ngarbage_collector_unread_kinds "
	// startLimit is the time limit for the program to serve.
	startLimit = 30 * time.Second
)

// page reads what the program serves at its port.
type page struct{ port int }

// newPage returns the page of a program that is to serve at a free port.
func newPage(ctx context.Context) (page, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return page{}, fmt.Errorf("find a free port: %w", err)
	}
	return page{listener.Addr().(*net.TCPAddr).Port}, listener.Close()
}

// read returns the body of the answer 200. The program makes its certificate at start, so
// that no client can verify it.
func (p page) read(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", p.port, path),
		nil)
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("read %s: %s", path, response.Status)
	}
	return string(body), err
}

// IsSynced reports whether the graph has all kinds.
func (gc *GarbageCollector) IsSynced(klog.Logger) bool {
	ctx := context.Background()
	if _, err := gc.page.read(ctx, "/readyz"); err != nil {
		return false
	}
	metrics, err := gc.page.read(ctx, "/metrics")
	return err == nil && strings.Contains(metrics, unreadMetric+"0\n")
}

// GraphHasUID reports whether the graph has the object. It waits until the program serves.
func (gc *GarbageCollector) GraphHasUID(uid types.UID) bool {
	var graph struct {
		Nodes []struct {
			UID     types.UID
			Missing bool
		}
	}
	err := wait.PollUntilContextTimeout(context.Background(), time.Second/10, startLimit, true,
		func(ctx context.Context) (bool, error) {
			text, err := gc.page.read(ctx, graphPath+"?format=json&uid="+string(uid))
			if err != nil {
				return false, nil // the program does not serve yet
			}
			return true, json.Unmarshal([]byte(text), &graph)
		})
	if err != nil {
		panic(fmt.Errorf("read the graph: %w", err))
	}
	for _, node := range graph.Nodes {
		if node.UID == uid && !node.Missing {
			return true
		}
	}
	return false
}
