package load

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Admin is the user of the load generator, who may do everything.
const Admin = "bench"

// upstreamLoops is the user of kube-controller-manager.
const upstreamLoops = "system:kube-controller-manager"

// groups returns the groups of each user.
func groups() map[string]string {
	const all = "system:serviceaccounts,system:serviceaccounts:"
	accounts := all + deploy.Namespace
	return map[string]string{
		Admin:                                   "system:masters",
		upstreamLoops:                           "",
		sandbox.UpstreamSidecarUser.Name():      accounts,
		sandbox.PVControllerAccount.Name():      accounts,
		sandbox.ProvisionerAccount.Name():       accounts,
		sandbox.GarbageCollectorAccount.Name():  accounts,
		sandbox.UpstreamCollectorAccount.Name(): all + "kube-system",
	}
}

// newTokens returns a token for each user, and the token file of the API server.
func newTokens() (map[string]string, []byte, error) {
	tokens := map[string]string{}
	var file bytes.Buffer
	lines := csv.NewWriter(&file)
	for user, groups := range groups() {
		tokens[user] = strings.ToLower(rand.Text())
		if err := lines.Write([]string{tokens[user], user, user, groups}); err != nil {
			return nil, nil, fmt.Errorf("write tokens: %w", err)
		}
	}
	lines.Flush()
	return tokens, file.Bytes(), lines.Error()
}
