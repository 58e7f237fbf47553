package credentials

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// clusterName is the name of cluster and context in kubeconfig files.
const clusterName = "exeunt"

// WriteKubeconfig signs a client certificate for identity and writes a self-contained
// kubeconfig for the API server at url.
func (a *Authority) WriteKubeconfig(file, url string, identity Identity) error {
	pair, err := a.SignClient(identity)
	if err != nil {
		return err
	}
	content, err := clientcmd.Write(api.Config{
		Clusters: map[string]*api.Cluster{
			clusterName: {Server: url, CertificateAuthorityData: a.CertificatePEM()},
		},
		AuthInfos: map[string]*api.AuthInfo{
			identity.User: {ClientCertificateData: pair.Cert, ClientKeyData: pair.Key},
		},
		Contexts: map[string]*api.Context{
			clusterName: {Cluster: clusterName, AuthInfo: identity.User},
		},
		CurrentContext: clusterName,
	})
	if err != nil {
		return fmt.Errorf("encode kubeconfig of %s: %w", identity.User, err)
	}
	return WriteFile(file, content)
}
