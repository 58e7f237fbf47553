package launcher

import (
	"fmt"
	"os"
	"path/filepath"
)

// containerdConfig has runc, the image of pod sandboxes, and the directories of the network
// plugins. Debian's runc and small machines have no AppArmor.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%q]
conf_dir = %q

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false
`

// networkConfig connects pods by a bridge. The node is their gateway.
const networkConfig = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{
    "type": "bridge",
    "bridge": "pods",
    "isGateway": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

// kubeletConfig evicts no pods, because the disk is the machine's. The node reports its
// volumes each second, and a pod with an attached volume waits for the report.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication:
  anonymous: {enabled: true}
  webhook: {enabled: false}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
resolvConf: ""
nodeStatusUpdateFrequency: 1s
syncFrequency: 5s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 0%%, nodefs.available: 0%%, nodefs.inodesFree: 0%%, imagefs.available: 0%%, imagefs.inodesFree: 0%%}
shutdownGracePeriod: 0s
providerID: %q
nodeLeaseDurationSeconds: %d
`

// file returns the path of a configuration file.
func (c Config) file(name string) string { return filepath.Join(c.Dir, "etc", name) }

// writeFiles writes the configuration of the programs.
func (c Config) writeFiles() error {
	plugins := filepath.Join(c.Dir, "etc", "cni")
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		return fmt.Errorf("create directory of configuration: %w", err)
	}
	for path, text := range map[string]string{
		c.file("containerd.toml"): fmt.Sprintf(containerdConfig, c.Pause, filepath.Join(c.Programs, "cni"),
			plugins, filepath.Join(c.Programs, "runc")),
		c.file("kubelet.yaml"):                  fmt.Sprintf(kubeletConfig, c.ProviderID, c.LeaseSeconds),
		filepath.Join(plugins, "pods.conflist"): fmt.Sprintf(networkConfig, podNetwork),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

// kubeletFlags returns the flags that are no part of the configuration file.
func (c Config) kubeletFlags() []string {
	return []string{
		"--config=" + c.file("kubelet.yaml"),
		"--kubeconfig=" + c.Kubeconfig,
		"--hostname-override=" + c.Name,
		"--node-ip=" + nodeAddress,
		"--root-dir=/var/lib/kubelet",
	}
}
