package programs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestMetricsRequireAuthorization(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	standby, url := startStandby(s)
	admin, anonymous := s.Plane.RESTConfig(), rest.AnonymousClientConfig(s.Plane.RESTConfig())
	for name, tc := range map[string]struct {
		who      *rest.Config
		path     string
		status   int
		contains string
	}{
		"standby is alive":                  {anonymous, "/livez", http.StatusOK, "ok"},
		"anonymous reads metrics":           {anonymous, "/metrics", http.StatusForbidden, "system:anonymous"},
		"forged token":                      {bearer(s, "forged"), "/metrics", http.StatusUnauthorized, ""},
		"token without rights":              {bearer(s, token(s)), "/metrics", http.StatusForbidden, "system:serviceaccount:" + s.Namespace},
		"user without rights":               {user(s, sandbox.User("visitor")), "/metrics", http.StatusForbidden, "visitor"},
		"monitoring group reads metrics":    {user(s, sandbox.User("prometheus", "system:monitoring")), "/metrics", http.StatusOK, `workqueue_depth{name="claims"} `},
		"administrator reads flags":         {admin, "/flagz", http.StatusOK, "leader-elect-resource-name"},
		"administrator reads configuration": {admin, "/configz", http.StatusOK, `"pv-controller":{"kind":"PVControllerConfiguration"`},
		"anonymous reads configuration":     {anonymous, "/configz", http.StatusForbidden, "system:anonymous"},
		"administrator reads profile":       {admin, "/debug/pprof/goroutine?debug=1", http.StatusOK, "goroutine profile"},
		"anonymous reads profile":           {anonymous, "/debug/pprof/goroutine?debug=1", http.StatusForbidden, "system:anonymous"},
		"administrator reads cache state":   {admin, "/readyz?verbose", http.StatusOK, "[+]informer-sync-volumes ok"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := read(s.Ctx, tc.who, url+tc.path)
			s.Must(err, "read "+tc.path)
			if status != tc.status || !strings.Contains(body, tc.contains) {
				t.Errorf("%s returns %d, want %d and %q in:\n%.500s", tc.path, status, tc.status, tc.contains, body)
			}
			if strings.Contains(body, "pv_collector_") {
				t.Errorf("a standby reports the volume metrics of the leader")
			}
			if strings.Contains(body, "concurrent-gc-syncs") {
				t.Errorf("/flagz shows a rejected flag")
			}
		})
	}
	expectJSON(s, standby)
}

// startStandby starts a pv-controller that serves and never leads, because its lease has
// another holder. It returns the process and its URL once the process is ready. Requests
// are authorized with the rights of the service account.
func startStandby(s *harness.Session) (*sandbox.Process, string) {
	s.T.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "standby"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To("another holder"),
		LeaseDurationSeconds: ptr.To[int32](3600),
		AcquireTime:          ptr.To(metav1.NowMicro()),
		RenewTime:            ptr.To(metav1.NowMicro()),
	}}
	_, err := s.Client.CoordinationV1().Leases(s.Namespace).Create(s.Ctx, lease, metav1.CreateOptions{})
	s.Must(err, "create lease")
	account, err := s.Plane.Kubeconfig(s.Ctx, sandbox.PVControllerAccount)
	s.Must(err, "write kubeconfig")
	for {
		port := harness.FreePort(s.T)
		process, err := s.Plane.StartPVController(s.Ctx, sandbox.Controller{
			Name: fmt.Sprintf("pv-controller-standby-%d", port), HonorReclaimPolicy: true, Kubeconfig: s.Plane.AdminKubeconfig,
			Args: []string{
				"--leader-elect=true", "--leader-elect-resource-name=standby", "--leader-elect-resource-namespace=" + s.Namespace,
				"--logging-format=json", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
				"--authentication-kubeconfig=" + account, "--authorization-kubeconfig=" + account,
			},
		})
		s.Must(err, "start standby")
		url := fmt.Sprintf("https://127.0.0.1:%d", port)
		if awaitReady(s, process, url) {
			return process, url
		}
	}
}

// awaitReady waits until the process, which stops with the test, is ready. It returns
// false if the process ended because another process has taken the port.
func awaitReady(s *harness.Session, process *sandbox.Process, url string) bool {
	s.T.Helper()
	s.T.Cleanup(func() { _ = process.Stop(context.Background()) })
	ready := false
	err := wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-process.Done():
			return true, nil
		default:
		}
		status, _, err := read(ctx, rest.AnonymousClientConfig(s.Plane.RESTConfig()), url+"/readyz")
		ready = err == nil && status == http.StatusOK
		return ready, nil
	})
	s.Must(err, "await the standby")
	if !ready && !s.LogContains(process, "address already in use") {
		s.T.Fatalf("the standby died: %v", process.Err())
	}
	return ready
}

// read returns status and body for the client of a configuration. The certificate of the
// server is self-signed.
func read(ctx context.Context, who *rest.Config, url string) (status int, body string, err error) {
	config := rest.CopyConfig(who)
	config.Insecure, config.CAData, config.CAFile = true, nil, ""
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, "", fmt.Errorf("make client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("make request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("send request: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("read answer: %w", err)
	}
	return response.StatusCode, string(text), nil
}

// bearer returns the configuration of a client with the token.
func bearer(s *harness.Session, token string) *rest.Config {
	config := rest.AnonymousClientConfig(s.Plane.RESTConfig())
	config.BearerToken = token
	return config
}

// user returns the configuration of a client with a certificate for the identity.
func user(s *harness.Session, identity sandbox.Identity) *rest.Config {
	s.T.Helper()
	file, err := s.Plane.Kubeconfig(s.Ctx, identity)
	s.Must(err, "write kubeconfig")
	config, err := sandbox.LoadConfig(file)
	s.Must(err, "read kubeconfig")
	return config
}

// token returns a token of a service account without rights.
func token(s *harness.Session) string {
	s.T.Helper()
	accounts := s.Client.CoreV1().ServiceAccounts(s.Namespace)
	_, err := accounts.Create(s.Ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "visitor"}},
		metav1.CreateOptions{})
	s.Must(err, "create service account")
	request, err := accounts.CreateToken(s.Ctx, "visitor", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	s.Must(err, "create token")
	return request.Status.Token
}
