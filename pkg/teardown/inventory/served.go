package inventory

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// serverOf returns the address of the server of a volume, "" for another source: a pod of the cluster may be behind it.
func serverOf(v *v1.PersistentVolume) string {
	switch source := v.Spec.PersistentVolumeSource; {
	case source.NFS != nil:
		return addressOf(source.NFS.Server)
	case source.ISCSI != nil:
		return addressOf(source.ISCSI.TargetPortal)
	case source.CSI != nil: // nfs.csi.k8s.io, smb.csi.k8s.io, iscsi.csi.k8s.io
		for _, name := range []string{"server", "source", "targetPortal"} {
			if text := attribute(source.CSI, name); text != "" {
				host, _, _ := strings.Cut(strings.TrimPrefix(text, "//"), "/")
				return addressOf(host)
			}
		}
	}
	return ""
}

// attribute returns an attribute of the volume. Its class may write it in capitals, and the drivers take that.
func attribute(source *v1.CSIPersistentVolumeSource, name string) string {
	for key, text := range source.VolumeAttributes {
		if strings.EqualFold(key, name) {
			return text
		}
	}
	return ""
}

// addressOf returns an IP address or a host name in one form, without its port.
func addressOf(text string) string {
	if address, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return address.String()
	}
	if address, err := netip.ParseAddrPort(text); err == nil {
		return address.Addr().String()
	}
	host, _, _ := strings.Cut(text, ":")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// cephDrivers ends the names of the CSI drivers of Ceph.
const cephDrivers = ".csi.ceph.com"

// addCluster notes in which namespace the Ceph cluster of a volume or snapshot is. Rook runs the CSI driver where its
// operator is, and makes the namespace of each cluster the ID of the cluster, which handles have.
func (i *Inventory) addCluster(driver, handle string, others ...string) {
	if !strings.HasSuffix(driver, cephDrivers) {
		return
	}
	for _, namespace := range append(others, cephCluster(handle)) {
		if found := (word{namespace, driver}); namespace != "" && !i.clusters[found] {
			i.clusters[found], i.found = true, nil
		}
	}
}

// secretsOf returns the namespaces of the secrets of a volume of Rook: those of the Ceph cluster. The handle of a static
// volume has no ID of a cluster, and that of a RADOS namespace or a subvolume group has a hash.
func secretsOf(source *v1.CSIPersistentVolumeSource) (namespaces []string) {
	if source == nil {
		return nil
	}
	if kind, is := strings.CutSuffix(source.Driver, cephDrivers); !is || !strings.Contains(kind, ".") {
		return nil // without the name of an operator in front: the cluster is elsewhere
	}
	for _, secret := range []*v1.SecretReference{source.NodeStageSecretRef, source.NodePublishSecretRef,
		source.ControllerExpandSecretRef} {
		if secret != nil {
			namespaces = append(namespaces, once(secret.Namespace))
		}
	}
	return namespaces
}

// cephCluster returns the ID of the cluster in a handle: VERSION-LENGTH-ID-POOL-UUID, "" for another form.
func cephCluster(handle string) string {
	const before = len("0001-0009-")
	if len(handle) < before || handle[4] != '-' || handle[9] != '-' {
		return ""
	}
	length, err := strconv.ParseUint(handle[5:9], 16, 16)
	if end := before + int(length); err == nil && end < len(handle) && handle[end] == '-' {
		return once(handle[before:end])
	}
	return ""
}

// setService replaces the addresses of a Service, which are nil once it is gone.
func (i *Inventory) setService(name key, addresses []string) {
	for _, address := range i.services[name] {
		rest := slices.DeleteFunc(i.serving[address], func(other key) bool { return other == name })
		if i.serving[address] = rest; len(rest) == 0 {
			delete(i.serving, address)
		}
	}
	for _, address := range addresses {
		i.serving[address] = append(i.serving[address], name)
	}
	if i.services[name] = addresses; addresses == nil {
		delete(i.services, name)
	}
}

// addressesOf returns the IP addresses and host names of a Service; its names in DNS follow from its name.
func addressesOf(s *v1.Service) []string {
	all := slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs)
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		all = append(all, ingress.IP, ingress.Hostname)
	}
	addresses := []string{}
	for _, text := range all {
		address := addressOf(text)
		if address != "" && text != v1.ClusterIPNone && !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// place returns where a snapshot is, nowhere without a content. A snapshot over NFS is on the server in its handle.
func (c *content) place() place {
	if c == nil {
		return place{}
	}
	server := ""
	if c.driver == "nfs.csi.k8s.io" {
		server, _, _ = strings.Cut(c.handle, "#")
	}
	return place{c.driver, addressOf(server)}
}

// holdServer keeps the disks from which a pod serves what is kept, and reports whether one is new. The pod ends after those
// that write to it.
func (i *Inventory) holdServer(v *view, server string) bool {
	namespaces := i.servedFrom(server)
	for namespace := range namespaces {
		i.infrastructure[namespace] = true
	}
	return i.hold(v, namespaces)
}

// isServed reports whether a pod may serve the volume of the claim from a disk of the cluster.
func (i *Inventory) isServed(v *view, c *request) bool {
	for _, f := range i.volumesOf(v, c) {
		for namespace := range i.servedFrom(f.server) {
			if v.claimed[namespace] {
				return true
			}
		}
	}
	return false
}

// findServing finds the Services through which pods use volumes, or a CSI driver is to delete some.
func (i *Inventory) findServing(v *view) {
	for _, f := range i.volumes {
		used := f.deletable || f.claimed && len(v.users[f.claim]) > 0
		if f.server != "" && used && !i.stuckVolume(v, f) {
			for _, service := range i.servicesAt(f.server) {
				v.serving[service] = true
			}
		}
	}
}

// servedFrom returns the namespaces of the Services that have the address of a server.
func (i *Inventory) servedFrom(server string) map[string]bool {
	namespaces := map[string]bool{}
	for _, service := range i.servicesAt(server) {
		namespaces[service.namespace] = true
	}
	return namespaces
}

// servicesAt returns the Services that have the address of a server.
func (i *Inventory) servicesAt(server string) []key {
	found := slices.Clone(i.serving[server])
	labels := strings.Split(server, ".") // [POD.]NAME.NAMESPACE[.svc[.DOMAIN]]
	end := slices.Index(labels, "svc")
	if end < 0 && len(labels) == 2 {
		end = 2
	}
	if end >= 2 {
		named := key{labels[end-1], labels[end-2]}
		if _, is := i.services[named]; is {
			found = append(found, named)
		}
	}
	return found
}
