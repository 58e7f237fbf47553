package csi

import (
	"errors"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr/funcr"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"k8s.io/klog/v2"
)

func TestSecretsInResponsesAreNotLogged(t *testing.T) {
	var logged strings.Builder
	sink := funcr.New(func(prefix, args string) { logged.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 9})
	ctx := hideInLogs(klog.NewContext(t.Context(), sink), map[string]string{"password": "planted", "short": "is"})
	logger := klog.FromContext(ctx)
	logger.V(5).Info("GRPC response", "response", "the key is planted", "err", errors.New("planted is wrong"))
	logger.V(5).Info("GRPC call", "request",
		protosanitizer.StripSecrets(&spec.DeleteVolumeRequest{VolumeId: "id of planted"}))
	logger.Error(errors.New("no planted"), "it is planted")
	logger.WithName("below").WithValues("err", errors.New("planted")).Info("said", "count", 3)
	if text := logged.String(); strings.Contains(text, "planted") {
		t.Errorf("the log has the secret:\n%s", text)
	}
	for _, want := range []string{"the key is ***stripped***", "***stripped*** is wrong", "no ***stripped***",
		"it is ***stripped***", "id of ***stripped***", "below", `"count"=3`} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, logged.String())
		}
	}
}

func TestContextWithoutSecretsIsUnchanged(t *testing.T) {
	if ctx := hideInLogs(t.Context(), nil); ctx != t.Context() {
		t.Error("the context was changed")
	}
}
