/// What the `openssl` command has made with the first of the sample keys, and keys of other kinds.
enum OpenSSLSamples {
  static let message = Array("A message.".utf8)

  /// The signature of the message by `openssl dgst -sha256 -sign`.
  static let signature = """
    lKw68mOEdi1TA437DBhNYaiLcQoG6sL4A4NoTIxLgtJQ8TSZgEPhJX52T1t1i-a2lL8NyndmP0MJsjthXPT6vV8O\
    3S1gRTvR6g5-I5wHZU-RUhCRtMN--cOu_ndLpCt3QUNTLXMl9gcbHr8mmVPCRWcGt6xZ_TnfRKQBxjTjx-iNL-iB\
    O0BYG3AB6ds22COOfgZDbfuTmiHuQUNRGzJ_9irL1r_DAIWNkr2NCaz_gpZgwp1Xa81oQRk3JETVIkFAzt5T04AV\
    73oLIXbMNMSQAhvm9Ov4OGzJ76HPM5Gtqq5UIlr0w_N-fGwqWHtZROpgmr-oXaIBv1gLNig0kQ1MQQ
    """

  /// Signatures of the message by the same key, but not by RS256.
  static let otherSignatures = [
    "PSS": """
    m06SG1F18osXdc-xmP1tRhgN4YKyDRIBwzvJFRKN7U3zb4bvT0ukm0_C5LaQewU3OrriCy52-uAEKWQwzwxB2B-e\
    aDkL1AVdTd5BES4kgqWeLCRe0WdnSQXHT_B2_b9lKCyd2KbH0XwsnK4GE73tmBkKWJcDzetTuswao5CtRf-3OPCe\
    A_XrwbGazmFObZWs1F4mRp0V9OA19eZfljtY5-XhyiGcrP7s-rPyycEpZE7kqqBw9mbNELyA53qRVzEkBeiv71NM\
    kYwphvTVaNqy1b-FIw1mg18MR_sYYpB100zwjmXwkn00d8JjIvw2pgGVl-gKS_73gnl6Vxx7G5n-fg
    """,
    "SHA-1": """
    gSuOgJj3_KaYJdntAQiMQIx3w5GErVyay3Kx3_K4_tkix95RjkeqwGqEzxifi5qh0S5sAI3zE6jXnZDIIvZ-NkrK\
    rrKXaGdjRStyg5N2JHKsvPIQ1d9OI0hK7_YBsuld1DJZnCz7ncpo5HBiz4w7hkO1BOb7bvv9Ib7rrvLt_LcMEWd7\
    dX806UNI_XhCEpU1q8g92anbtpjcWbR7WwShC20UYjEvKARGQd5pgOL5oV7giIaCvMXTpH-_eQQ6kyqeVlA3YIz4\
    C2h5QfbG1b0MIx8-gMzxMwUDZAd7DLNuDx50Oh3JCPNYU59xpjc-z9qrzsuZEj-jY5lIHUzVDT07mQ
    """,
    "SHA-512": """
    Lh6rATunvwULlQJ6ECShuvTNm7khpKuCwqFgJHGHpImdWGuDpmJSVSSvkmm39hzJVq669_xGzzsgNNkcn-Abr1fn\
    mbZQj7TgQ0CIZJmjeu004iAVo9KgJjLDy-zCK6qbpQ3rxg1hPvjUgOaiGdSiXUREfgRrsGVr0hnzNyRMVmUwBdIx\
    h8-_AXElcTRYDnRtdr4aiIRVqt2S2UQuBypvQ72aPbRlcsDaLCzS3jXL3XYQYOYNMtnaVTGhtGCYyXJa6B-ku0_y\
    dsfCvgREnKk9x9So8gJCE-_ET5bInop2F3E4WyWTlvFnNVfqvqj-TwYublg621thA3H9QiEPkLIeKw
    """,
  ]

  /// The first of the sample keys in PKCS #8.
  static let pkcs8PEM = """
    -----BEGIN PRIVATE KEY-----
    MIIEugIBADANBgkqhkiG9w0BAQEFAASCBKQwggSgAgEAAoIBAQCheiNuJ5+Sn5Me
    qNkyuVQK8IYXNJ+Op4ENLkmVqnASWoBxz0BSB9+g9D4e+BLBGA06Y8vXiEU2Mnrg
    /if8rmRmGwITmmtY+84mUPSURAf6yTm6RUARy1QlPHQmZrriL11xvaDtUhXBwIXP
    4idYh2EE2P9z5shss+JED/4OTbJGnjO0+yyPL/zEbPnPzKyjXB5m/4CN83KM6Mbv
    2H+Ljtbuy2ip3hQq6+AF4Hek97hfkzVU1xca+pWOq8fjvVrRUtIqw4PnjEZokXd5
    VpYzWxHIGkospZIK/EaFptTRzS1EPRsCnNXQZSuhOOvWH5wiakM8Vyn8oGa3/8te
    smKBzn8TAgMBAAECgf9NRKSvkUZKYxGDGkjUfNo6Yd3IPOYc3QpjxEJx25zFK4lK
    7GFa32mjGzyelRZkT54E0rw35n038e/aucNopgpk0Yes2beEXPnIW/Ss/eDToHZ/
    K6P8387kAomR1paWpROR2aun5B+FFxrw3sb1FdLW/v899rDxUyJybzSio4srPsVf
    l2FoeQ/3ot7Lf5pwEM8um8ZMzHbiaIVuOowwgbbnO9js1K8KOiY15vHw5U8uVK6M
    2XRVyzLYqiyT61742H9qgGmSlTfBGddb+TozpLIRvXvehGhC4Ilxx+twQY95ryn3
    e4YgyERB4PzEDOVrBJNsokux9RVIHrdUxRSXKtkCgYEA2xPDDf6VW49P3UnjAPjV
    G1T5oHyLMH6+WPtTXf7Cuj7cXxrybSZBtIc88zs2OeVPiZfrQbbOOq5MRTsdgG3e
    WpIk3LOlbzLpjQaPw4VrTMcsfBtvTGhNUPG+apJGEsyFiBt6R7l1VPgO7+2P12z2
    dWJyCFa7wWliNFnSmHkZsBkCgYEAvLEuL0jP+zGQY7hXmP3EJQjKaBiRgF3YFG5A
    Np5yc5oZWrpvFQCr3UHtYTbjc95IIxrljfPZvM3ZuHyLD+e0ROTmEJUWTJQTVzNs
    x906LAEQLOyjaJSBZ9g0+fxJdOPgCKkuEYQC3eRrTRuuxt1Wj0cruYPtd+B6EV/P
    QXG5HgsCgYAzaLDGEO7VnIy+Pf9yE/JWRpuJiJBVIfjjAp8umIDzmZq3CqjG6kpS
    5cVswoFYFrKSdD71ncNJS+uD93pVz/J0yISz8cgpjwX1XQvRcvaZ/sc2nG2CvZsf
    Got3kLm24Z2YMfKA8ElTVh6TOOkfQWeYZjCiOlA289biuA1OUGSxyQKBgCuAWZpz
    GefabGRhCmjuEDtNhIRtLZY/jGJhbJJrAw3dt/yvwI5CAl1XJqfj5JpA47acK9IH
    JuqdNpWOuOyoyWmcr+GgzWxIMxFGfMyzFwcwE4+X2rBwlEjhko0TecfmBS9Z+ZH2
    Mkb/szEqsaeNPbh4ev8hCC075kh9IyX+VuQzAoGAZyB6jrb8crNCIHY7i82mO/Uq
    8uSj2Hv3K1yDbP1mweybjIgBNlXHvlNUa76SP/EZ0wgUYj9ej21ohk1SjkDn8hGe
    fbxGUKXWjYNWYm1jd3A1mYSiYwK262po40G/H/8vqpOpNladKPEfV9w8PCvzEnkx
    DoetQuUfqe4//FQzWXY=
    -----END PRIVATE KEY-----
    """

  /// The same, encrypted with a password.
  static let encryptedPEM = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIIFHTBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHAQI39Zvw7JWL0cCAggA
    MAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBBgMyXmyxIqyNm/T9gkSwfoBIIE
    wK8ClUAe75TkPI/4sIWuDnw7PWBQsUiXf/2YIqEX3QcuFItLNJG8qF1F4ZE1iqGB
    nIFiDdnlR6DLAfXv9msy+ThRryubUPZHWmkE7yMCCQZHR8Am2DRVxqJWK7YpMJJy
    zw0DUW7dunqMkjViJrhav3GENxnsvT4JZVT2lANlsHpMHPa0a77yTnf6GE9INY/O
    nLaF52xr10MxzzL8qnLPWbQ2f8Pygpmk+3NeEMpXoRSMjHQwItV82KqZpWO7fsXG
    V6PQTAZ/9307H2e/dKBl3oLL/lBEDbKrH3lQ+pa33U9jPG8p1p1H1+ASCL9RHodR
    pRZZaoLGQucjEmg3zRmaQq5gW+JDo6uk0AXn3RhHNYgPoV7TbFJFjlyQpzoGNrXf
    hYFJFK+KZ7EHGhEWOB5c/dxKBI7OF2m6XRQ8SEI21fSnkBa1eKaTb4cL0tn2BJb1
    LKlmFdeuJEK/4KvNZKovYYOxPsUyFWkQOrnzdLgQscY+W+m5NpszIgO2PhUlGFXV
    PMcJKjjejdFY4Ed54eAlCWyAJwUChR0D9xKDkLaniVXPMTAGuE+7m9F0Jg+S1ZlV
    Cl4QjH6aaQESf7OOlcus6KaCzh8EkQONf4/ln/h6BdvaJyKGIj6tpZAUaG7Ygeat
    7/t+DKweqKSQdVSdtMgXUYydvGTsP7xmIfy5+qpvxyDk/lj8nBM7/vZN1/7azfjM
    gWR8IaOIlm5xCZJii2/xGe/t57+E8gCsOx2J6/Kf8k8hOTvvjE4R8QjUCJlK/K3j
    tbcq8cF78A603bteSIqImFxyHGDfUAEJyNCWsf2WRUQhF/5GiTzYys+bm9gdSSrp
    gk5BQjD2dkkAtcT8/HtFRTGWEKR7hYYcembi+DhGkgXYTfBJB9iz9+NKU4dd7+uA
    yH2Qy46oigWK5o2aMP0adz6PYxQgGPvtSAgr0eNHL/9vXW+4ReLtCGbo6ZY+Mpjp
    yk3Q+KaskQrLoZ276V7DwvL9mAOJgCZ1JwMyAnsRTkjwPc10m1BOnGdpuH5Kfzrm
    Nj7IB4pZScECHMOG4nDjhf/wRF2mEBeEsl4bTQ9kxiyuqbsc6c9V1VquEcFpf9gm
    gpkH6x5xZvn/17Y2juzqn1HvgAKKv0leYhYHaqh2PRgLiZqV8RTjpBTGqjS1fUuG
    q/7/+KVeehox/GCFKPkE9MpC2oZt9QKIpFBf2hccpT6pp9SGaiqRVbEWMbNoKVPg
    0y+YOrb86twHuHbLyhr4NC0TupDG4pUqXIaDFEtggE49ec4HpcNNG/FRdVrZg/Um
    kwdm5pVwe7HUZd0gG6cAByfWgnq4Ym6JqE1mtb23PT5Nud7bO2q461E78dRCWw57
    E4ywZhjG81dTUyMYBWQ0a6pRvudE8tDbl60p4NpcknN6HnD9kkJ1SHS7yoLZu0b7
    T8d1dJEA0hMuLaHC9VcLEhwSOUyYYUnSAHNKklvxp/9RIUlv1xJVa7LL6ey6lyHS
    JOiAtkB6o4bbx94eUNUxH+hJZhdyEUvTiAV+sNKxKcN4Fq3FYW+78igiUb9aH6+c
    YkNak8Y4EHqbDovpfxFkV0V6fscWpaJSCsNsN9L7sQy0IT0pSzHoyAhtgr19AVWH
    3gd4kbM1RVzStrCp/ONixqA=
    -----END ENCRYPTED PRIVATE KEY-----
    """

  /// The same in PKCS #1, encrypted with a password.
  static let encryptedPKCS1PEM = """
    -----BEGIN RSA PRIVATE KEY-----
    Proc-Type: 4,ENCRYPTED
    DEK-Info: AES-128-CBC,9007C065C57BD56BBDB9F689E87E132B

    pZ5BSyGK3nJKsXzku9EywXmQQeSQSVKU6eKBsr0JffElBOT4Zd1j7QK3yZ9GGHqx
    qbegs53pJOdFNClSBThbTr783mU51YHwsC2EB8p/LaX1sIltheBGexmnsmrkWY9X
    6zAFIkRsjr7elT6c3+Y76W+ZONwVnIzpN3fgzbnXHvfgAj/hqaGf0jWrjF4ZgIgv
    quaUNbvj6tmm++aLOX2+/x+v9wRjnLAvdaprZyGgHqJmY2f8wyHcwQN0e5rPmJzo
    m5PCRqF6pkRnSwG0Y0xpdEvgFIYLeZ35MhrZoYdwFsXG9Idou+IAKVz0xAGP9MoR
    eJv18L7otNyF9fGy4f36dRsq+HiZZyCwUSLWV4t1hC9iwaYQpV2vS6o5PGpf8b6h
    ascag/pI47QZ61EwYGLoPSgU26Z0YG+7wy8NPjX6xQ+Ty+eM8aK2mfNx0A7cntJq
    xIFcGNbqBKexYKa1Bp71bcylLjAYgNiCxLul5h28fwcvFEsc+guReVKjQdGRzW1q
    JsNc9QT17hKdAg4ONmP7BU4grpUdfATuxVtDsk0zwndIzSb59y1u2fufy21sgcca
    XIT8HHSNf3j5bSWSy0jyrsxyPC01+5hXMkWgXqXsdNew7K9scA2b9kSTHe/Lv/GT
    0NWkSFmCHxbk56179awZEATWBd8mBr8Kx/pAffgq3PiqklUk/6niPjdQuzk7nqvX
    k7zDyjkEIclRE98EYdwLMQej+tT+nMyIQCsy4d9ZMZb96vAF3P+sdT857uyQXv1p
    HrbrE63PbqFDhzRc00MHVwwybRDSHhZEzWUsVftU/r2gspDjejJI0PppvAKOLxT+
    j88HTKhRLB4DFq853+L8GAavuJMiMpTEBxMuIApgtJyr85IX7YUXSbB2GE5i5GVO
    neB6dlDWe9REbZ3kVfuLuYljAdPH6WmuFsZkqu7nlLSFqIzYHLRHV3Twv0nveF1h
    ekRGvs6K6Pz/iAgEkfY8MDl3chkfR3bwr0c1CBGr/P0adIJpl8c1Q+ToinB4dCOP
    +apumh1TEzPnvLqcuiSMk0+9EVeX5fDH0mXf3S9v5wfZqA1wX479OOnI5QwAI7Pc
    UVl7VnBZsWrbwYkUMYXihCMXpQo+hDJGqrSW5ZWRtkxzy7iQclsdZ9zZdKwi77Gn
    aoY8cGNOFiFZUr3LMCCKTNKswAZn7KSlKRAnnHQnOQgXepRD4kGxxPrmjKKPzwpC
    ieEvfGohQHREAOxT2PkGbVIYefQQ33FE+WCEPKYQeKDm7n3XulCdNsKRA5GgzzsW
    hiMSqEZXxpdqMViTLxrOfy76MMuP9SMCtOOwydN9SnN3iTtb9Di3dNJZF870jS4H
    jHRDN0EOV0FhK74eINgEKami79cbN7Qs3o8q3jAZajDcILLdqW9j6s+FcYCQWUug
    74PKQx/ppEFOuT/o646KQuDxfrhrDJdJs3aqxcKQhhboLB6YqoDy5gww5h4jsugJ
    OGxu8ywhH2BPe2tTnSu2QhCwUmKADs4rZt8pr1SZtIT9oyV3NMrdAPsVR8573SMf
    FE4qGe1GawFGSkOPXJqOiYkbO44KTLzOe1DARUJ2vl1eyn+1v4KumfVsq4gE7khw
    -----END RSA PRIVATE KEY-----
    """

  static let ellipticPEM = """
    -----BEGIN EC PRIVATE KEY-----
    MHcCAQEEIGEGiXMaAHLkjm+IYddsCIF3/OsVhMXPTGLqRhEN1mAVoAoGCCqGSM49
    AwEHoUQDQgAEOY6q1izaHgXNoA9azejhj4gKOubjAZpuzipxg0sT7sTRhDADb6TN
    qLB0SO+spz3giADDVmN0pmJTJlGnPMe7uA==
    -----END EC PRIVATE KEY-----
    """

  /// An RSA key that only signs with PSS.
  static let pssPEM = """
    -----BEGIN PRIVATE KEY-----
    MIIEuwIBADALBgkqhkiG9w0BAQoEggSnMIIEowIBAAKCAQEAxDQg3YLBMQbytRSK
    a896LQSy3CDApz+9/YnP5iGCPmOPOatvJRyQVYlDnHaybkolmRXPUvR23UXyjMng
    ju8Sq7ERqflFWfHqQYHA/Dz61cyUfu1mIDsovyqV8qoLAfi5xzW8smx7b+G0+La8
    MjKuASmGNlg53hXAkbZlvpOK4spCn58zDKQjmNMLG95Jwg8FOhJlRdiQ6aixUzig
    wSdNEMmMdS+58vMHvZ1ZlF+rBFKjM1IsexVeNa2UkXVuf9peYB4X0UWz0uGkwp0S
    Cbuje0tNmFLYsEAqBTILkdKo9LTXGhK4wFG+OiWi7ZkU+jJ/FOCR95zQOUUI1VfJ
    rU2XrwIDAQABAoIBABwdWCRFq0dKNpcqFVeziE9RIAwZCWIt6RyeldLlNFOaUpix
    7yBDQo9vNugBvjm9mDuie23op+u3LTVtbCcvLN67ZcuUc5Ka7rVqUWwTlOH0CcdS
    X1L5BzK1eH0oTqF+sahRE/QBRYLXteX50WfkCTkTaS76X3hqZ4i5uUSgwcMTdkG9
    U9rEShakA8R59sA39Rfw0dJae4TatNQXUsx/PEqriM4UHlU3TY4UoZJdSoXGahdW
    pkr5Lnw8Jm59XpVmyVbZvLwaTSTJbFYQD7w+oDb4c+EWW3GuUU2mknON4L7e01ov
    Q6U8i6S5vPSu1MQRB0vVkpWsRw7aI9qv5YBGZlECgYEA6to6EY/GlzDiBsA0GqgN
    aHWhMK7sHaTHTxLz5XceOgVCiYKn7zvhRjPiankrJR5YC8o+27jCZRlcUWDp1+yf
    THlGgHRhCtIE2rZ5R4ca34NPb5VyWNDS85BCe7NZID4tDVzWAgnrIyAjvOQw2vaN
    JbfMFwJiNJR4Ymg95PjHZokCgYEA1d759HqLXPKxWnyaNA7WbH4PE0zZew5ok1Mn
    1r68NOCf6hHFzCaZvGAZUW8IqiASa6Msg44Uq9EW4VzgLKYAvYOj8dD+QC+LK0Vn
    DB35REQTc4uwbOYOrMs+qwtBEfKKq+qUy75iAI5zzNY+41RsXZC91g38IpPyfsRz
    DmGZ/ncCgYAwZTHsJoWU6FTbcUYLbC//I6ZIwvMTFL6hk9VApvBKooTYk10J1nwQ
    nGZ+7GMwrfUU0ONtIcClVrmIZ4EoprEY8DDQDatlsGuhqlKJo9Ss1IFNDC3ZEYc2
    +7ZHiWjHVSixhTzwhJy4y0myBg/vPzlM2XgsEaitDx9ToAmJIp7siQKBgBd7sD5j
    5kGCdG7XF6d3qZuoC8e2vHqCjoD+tHUj5E56C5UL9ogABQlmE+GZK35inyMqe4zG
    YQasorKEHClK4PHuLmYy6HfrwIAz0qjF8cTJJMmfIPQUHrBicLMfPTnXQ9q0mznz
    4ZbmDVkEfUtAzdVIO0/xoSm6zPmWYHvHw7zpAoGBANMhvSX5NJzbIlBVvmwIMwTw
    BcSdUyyNfHbLZHacEdwSAPleZ938IuVg3NC/UdpHe/A4z55Vj8y58VTderYPZgWk
    uhH+m0duEeqqdZVb0I602kA9HptEzpqmV9UTsMbPkArCLfy91DmlfBZMbOmB6yxH
    /w1XieN+UQwSHOyU5c/F
    -----END PRIVATE KEY-----
    """
}
