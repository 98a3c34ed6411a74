# shellcheck shell=bash
# Makes the box's certificates and kubeconfigs at each start. They are deleted with the box.

pki_authority() {
  mkdir -p "$1" && chmod 700 "$1"
  openssl ecparam -genkey -name prime256v1 -noout -out "$1/ca.key"
  openssl req -x509 -new -key "$1/ca.key" -sha256 -days 365 -subj /CN=frugality-lab -out "$1/ca.crt" \
    -addext keyUsage=critical,keyCertSign,cRLSign
  openssl ecparam -genkey -name prime256v1 -noout -out "$1/service-account.key"
}

# pki_certificate DIRECTORY NAME SUBJECT [ALTERNATIVE NAMES]
pki_certificate() {
  local names=${4:-}
  openssl ecparam -genkey -name prime256v1 -noout -out "$1/$2.key"
  openssl req -new -key "$1/$2.key" -subj "$3" |
    openssl x509 -req -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial -sha256 -days 365 -out "$1/$2.crt" \
      -extfile <(
        echo keyUsage=critical,digitalSignature
        echo extendedKeyUsage=clientAuth,serverAuth
        [[ -z $names ]] || echo "subjectAltName=$names"
      )
}

# pki_kubeconfig DIRECTORY NAME FILE: writes a kubeconfig with an embedded certificate.
pki_kubeconfig() {
  cat >"$3" <<END
apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: $LAB_API_URL
    certificate-authority-data: $(base64 -w0 "$1/ca.crt")
users:
- name: $2
  user:
    client-certificate-data: $(base64 -w0 "$1/$2.crt")
    client-key-data: $(base64 -w0 "$1/$2.key")
contexts:
- name: lab
  context: {cluster: lab, user: $2}
current-context: lab
END
  chmod 600 "$3"
}

make_pki() {
  local pki=$LAB_DIR/pki node address=${LAB_NODE_ADDRESS[$LAB_SERVER_NODE]} name
  pki_authority "$pki"
  local names=IP:$LAB_API_SERVICE_ADDRESS,IP:$address,IP:127.0.0.1,DNS:localhost
  for name in kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local; do
    names+=,DNS:$name
  done
  pki_certificate "$pki" apiserver /CN=kube-apiserver "$names"
  pki_certificate "$pki" apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  pki_certificate "$pki" admin /O=system:masters/CN=admin
  for name in kube-controller-manager kube-scheduler kube-proxy; do
    pki_certificate "$pki" "$name" "/CN=system:$name"
    pki_kubeconfig "$pki" "$name" "$pki/$name.kubeconfig"
  done
  for node in "${LAB_NODES[@]}" "${LAB_BOARDS[@]}"; do
    pki_certificate "$pki" "$node" "/O=system:nodes/CN=system:node:$node" "IP:${LAB_NODE_ADDRESS[$node]},DNS:$node"
    pki_kubeconfig "$pki" "$node" "$pki/$node.kubeconfig"
  done
  pki_kubeconfig "$pki" admin "$LAB_DIR/kubeconfig"
}
