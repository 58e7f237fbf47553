package csi

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWhatADriverSaysOfASecretIsHidden(t *testing.T) {
	secrets := map[string]string{"password": "hunter2\n", "empty": "", "port": "80"}
	err := redact(status.Error(codes.Unauthenticated, "login with hunter2 at port 80 refused"), secrets)
	if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "port 80") {
		t.Errorf("redact = %v", err)
	}
	plain := errors.New("not of gRPC")
	if got := redact(plain, secrets); !errors.Is(got, plain) || redact(nil, secrets) != nil {
		t.Errorf("redact = %v, want the error itself", got)
	}
}
