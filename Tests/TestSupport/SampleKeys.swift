/// 2048-bit RSA keys that are used only in tests and trusted nowhere.
package enum SampleKeys {
  /// Private keys in PEM.
  package static let pems = [
    """
    -----BEGIN RSA PRIVATE KEY-----
    MIIEoAIBAAKCAQEAoXojbiefkp+THqjZMrlUCvCGFzSfjqeBDS5JlapwElqAcc9A
    UgffoPQ+HvgSwRgNOmPL14hFNjJ64P4n/K5kZhsCE5prWPvOJlD0lEQH+sk5ukVA
    EctUJTx0Jma64i9dcb2g7VIVwcCFz+InWIdhBNj/c+bIbLPiRA/+Dk2yRp4ztPss
    jy/8xGz5z8yso1weZv+AjfNyjOjG79h/i47W7stoqd4UKuvgBeB3pPe4X5M1VNcX
    GvqVjqvH471a0VLSKsOD54xGaJF3eVaWM1sRyBpKLKWSCvxGhabU0c0tRD0bApzV
    0GUroTjr1h+cImpDPFcp/KBmt//LXrJigc5/EwIDAQABAoH/TUSkr5FGSmMRgxpI
    1HzaOmHdyDzmHN0KY8RCcducxSuJSuxhWt9poxs8npUWZE+eBNK8N+Z9N/Hv2rnD
    aKYKZNGHrNm3hFz5yFv0rP3g06B2fyuj/N/O5AKJkdaWlqUTkdmrp+QfhRca8N7G
    9RXS1v7/Pfaw8VMicm80oqOLKz7FX5dhaHkP96Ley3+acBDPLpvGTMx24miFbjqM
    MIG25zvY7NSvCjomNebx8OVPLlSujNl0Vcsy2Kosk+te+Nh/aoBpkpU3wRnXW/k6
    M6SyEb173oRoQuCJccfrcEGPea8p93uGIMhEQeD8xAzlawSTbKJLsfUVSB63VMUU
    lyrZAoGBANsTww3+lVuPT91J4wD41RtU+aB8izB+vlj7U13+wro+3F8a8m0mQbSH
    PPM7NjnlT4mX60G2zjquTEU7HYBt3lqSJNyzpW8y6Y0Gj8OFa0zHLHwbb0xoTVDx
    vmqSRhLMhYgbeke5dVT4Du/tj9ds9nVicghWu8FpYjRZ0ph5GbAZAoGBALyxLi9I
    z/sxkGO4V5j9xCUIymgYkYBd2BRuQDaecnOaGVq6bxUAq91B7WE243PeSCMa5Y3z
    2bzN2bh8iw/ntETk5hCVFkyUE1czbMfdOiwBECzso2iUgWfYNPn8SXTj4AipLhGE
    At3ka00brsbdVo9HK7mD7XfgehFfz0FxuR4LAoGAM2iwxhDu1ZyMvj3/chPyVkab
    iYiQVSH44wKfLpiA85matwqoxupKUuXFbMKBWBayknQ+9Z3DSUvrg/d6Vc/ydMiE
    s/HIKY8F9V0L0XL2mf7HNpxtgr2bHxqLd5C5tuGdmDHygPBJU1YekzjpH0FnmGYw
    ojpQNvPW4rgNTlBksckCgYArgFmacxnn2mxkYQpo7hA7TYSEbS2WP4xiYWySawMN
    3bf8r8COQgJdVyan4+SaQOO2nCvSBybqnTaVjrjsqMlpnK/hoM1sSDMRRnzMsxcH
    MBOPl9qwcJRI4ZKNE3nH5gUvWfmR9jJG/7MxKrGnjT24eHr/IQgtO+ZIfSMl/lbk
    MwKBgGcgeo62/HKzQiB2O4vNpjv1KvLko9h79ytcg2z9ZsHsm4yIATZVx75TVGu+
    kj/xGdMIFGI/Xo9taIZNUo5A5/IRnn28RlCl1o2DVmJtY3dwNZmEomMCtutqaONB
    vx//L6qTqTZWnSjxH1fcPDwr8xJ5MQ6HrULlH6nuP/xUM1l2
    -----END RSA PRIVATE KEY-----
    """,
    """
    -----BEGIN RSA PRIVATE KEY-----
    MIIEowIBAAKCAQEA1Awb5tfGViR9PKcwyNiomawgBqeDSa5RqHIxsY+L8jQ48otX
    NOlO/Kg6733nI/IbNnkRaXSlYPbI9dzSAvBVW4SWrHD2XRgLOYqLCx1CVL89v2V/
    xAtAxxdr8nObfqmUNOKiOXf45YH11/hCD6gpCjPc/63xriSLdxwdYqedR/1E+4Uw
    EYz/tWitE3cQn5ZrFCdUiSjN3C/VEWr2mP1WXYZ74P1RIii9+A7D9B9DLemTuN9u
    lVsZnPhCDJVD2aLf/RQ6IOk7cvREZIQNodHiBIu2vsWewEIv8rCfOdcBKeW2l9z8
    ho5qbW0F4omEDto+MXmJRuz97xhGH7xB/YdaAwIDAQABAoIBAC52WMbEENlfNXHM
    0IuxrX++j2Xl3oaOg6X9H5ZgdbGkb7X1gi490Ojbk85WMAdYTU4qSP5qaLJOYMo+
    kGXEc2+SJdGzDshnNE5vZPgSeS5ImScO/mfeb1swbp65ZiDi126fGhythQQE7fFc
    nF0B47wwkQQVARe/Oi/nISk0wOm81t4lqCg+gaDUB8cllixAl5G/uVQMLN4iSq0d
    8Zhj6fE/wYeTQ45BNoKNvC0KcJij+AwMEvo5JGbkocTZDPd5J0iuyPZzcQ3yquFr
    vb8M7pWf3fVcQxmMsJ9LEkwYu+rqdlcRNt0GNm9VAwnfuU3opcjODyJkZohANgRZ
    rTYyn4ECgYEA9M4sooe2CpwuTcNY4jd2iBcI4zIabiLg/zZBqCAL7djV1FU5FyZD
    J7WlQNIyY6wuXupFHr+s5sdDm/psjXg5Hb+EN/B1n25e7Dr7qYAqMkvISoYfzWxb
    Tw7Y6Iiz/amLW+/322T1OQ3DibketJjQvERb7+uHO378c+AL2DsnHgkCgYEA3b5z
    ZTcAkZASJKPhwkTrekPex7MW6ipG1ZTW5WRzSsL76E5/bbo1FUPnwI0y8NnuQFvd
    N56y7fMRDbpmAYf0HujhsxXYl5JsHOcY4N9urmSA5hEaVCXXAlWWFLE5sJM1G7ve
    mxny+xRw0sBCG4TVq9SESQ4JCoUYkmrD7IrmeqsCgYAetG1sxVDT69ry7fmMBiDb
    2OfId1RRVBacbBW4HKziXDwVscrDWI07wdDEXJjtX39BcGjS/n+VQpD8U2CiLd4c
    GRVgXsyh/pnxT0SZcfXY8SBiGIiMn3akZ9xU7jCFNGrCUUrpPbR0P4GzGID9bd1g
    f8J4STZhBABuGD/kEydI4QKBgQCuQpBPF3Vz72PCtaOiVyUzFYlLKPu2FHlMOcbT
    ySgttaPgAWh1I+O5jX7gPFavHqT0oPztS+NTyjQ5tKWbSGtZqyxL37wyCZi68gYE
    GrLRjBwcMY6eWIpqxDXIlyo+EMGoxPCAtVjVZk/v37VUCQUeH0nCW6xRPx17WzoT
    d2j/NwKBgARj86Nzyg44vLD4H1RCVFGaYb+Jz6KUnTOi1Me/Ir14BJF7orlKMxRB
    MVpI5/TwbFwA0NAqHfKuu1m7HJKKOjdl530t7wKPcSSiw0Xd0QqR/BzuWOoi5GlC
    rwIgLUZ/lnqh0kQHt6AnkDZSgwK81DMoYVNQHQf8YqGg29/xcoGV
    -----END RSA PRIVATE KEY-----
    """,
    """
    -----BEGIN RSA PRIVATE KEY-----
    MIIEogIBAAKCAQEAtstB4y5hcCEBe1L06eg2wJa20EhWFtB3nbpIX1lLD+VluSMH
    1fQvtz5VivnGWsXi7hmFagLOFUgjY7VDgPlcLyka8qiJpF6stt4sAPo8XF3Qifwd
    QWHasjljLqQe6rdZExGoabKiL4EHrZbvIQUN1mVh1FSNlDaDE+6g2akF3n0ECFos
    vzIzv/2iPfwOsPn6TcoZooUvYKzYmR+cs5TdMp/Tb5IyKPwsnQEOdIKlJQucaacX
    sNemvaggv/ou4w1rKGLmgPgI4mzXCWL8t7TFMM1nwKHyw8sDiZbuMmgMPmExJkZl
    yoGMVEB5Dzqsibz+E/JwZEEYbp0MVsi+696bVwIDAQABAoIBAFGU9sOPhDJYsMIb
    PK6WkrUyrsXXuwB0qyYsqTdQ8XTXQ6a00T72vEMS4Xfk0VfbANSWdFpjhRmveAf8
    svOBl1h/BoVtnfzLulblYotPI5hv0G59JIt1QnePsEn1Os0z5l/h3iHKdaMw+b3K
    YtCAYnQhDGAJGqUfDTJcqtJqIvHwZXNkjzY/54zO/xhTnIGfNC7zYtK587+ak8ia
    GQAl331EX97dC00ZzPc5NFMErs1UnDJXFGmeF3YCeiMOiS8qBTX+Xd2sDt9kWzIw
    xgwx7aU934mBgnj7+MT21dn2mBgJDD2SmuVwS9WnUDcc18rQBVvKD9hBPkBmFPK4
    7PlfMOUCgYEA5K6IqoWrqas6YPCsTvQQQi5sBvSwYGmqP9sa42cEWlDXWOH8lsIg
    yustc7q1lKJ4AjBNQCeIXMXyljpORWnZzPVuJ5KsQQFnNuR8AFIeRHuVNJOGUDoF
    qlqCN7Lm2fifWjd/qurbYpf8yfk916cdEiCO3Cf9vKadQBAQX8piu1MCgYEAzKFm
    HONWHV8YcSKBtEC+EITuyiS6iwZXX03GmoPgLGHDvhaHHb5y7maK1CbnEJI7FgDw
    pn7eQt983CnGf9TjiADM5dxVJlNKMc/6p5QlWah3oBK9xE8VOnAMV8qVDyceWmvw
    kPDoKn9Oy82DiNOXA8WRLEOj+ZaN/AxGBpBVo20CgYAYlgMvgiuQlE40eeusmWTe
    GKuYm9oSo4mgT+g2Jq87HpHohnNnqftolZxPYvV+w3Dvm03S5e0tPEL2j9I2eEjo
    VkK/km9elc4JAsuqJSoH5tmFy46XNYXCaPSzFFLpgGdxhaH+OD3Z/ck51cgmVVs0
    xbdWSB5pl+g0KQX5poKy7QKBgCgM8up2iFVJVoRWJ6K7BThAfGguFiC9xf4OP+/g
    HdEx9VjQGfP1YZNNmKB7WMBCjrP4zSEZNbFLAqootwQwC7SDy5a1sCjHJn9nYHzK
    HyFUOs2mvWOdwt7kLVZFfTUxB9zUwYnszNP8hNSYzcTK/QSs94P9XSutju6lDFOe
    jlRlAoGAbh1FBMTjiJkL9Qz9hxoD62i4+3U2pzJ6rRxChyfPFXvU5aWh1jFr7zR5
    z5bfV/PHDu0/l1JgL+NyrRqcViZ8VdEp2bUJCvSnw4zNx7cIXu6v96ysfqSD3qad
    pmS2GEzRvJfJ2SuQ09s8d0ppx8xyVvwawCWWcWMxaTFBIP4RWIE=
    -----END RSA PRIVATE KEY-----
    """,
  ]

  /// The moduli of `pems`, in base64url as in a JSON Web Key; the exponent of each is `AQAB`.
  package static let moduli = [
    """
    oXojbiefkp-THqjZMrlUCvCGFzSfjqeBDS5JlapwElqAcc9AUgffoPQ-HvgSwRgNOmPL14hFNjJ64P4n_K5kZhsC\
    E5prWPvOJlD0lEQH-sk5ukVAEctUJTx0Jma64i9dcb2g7VIVwcCFz-InWIdhBNj_c-bIbLPiRA_-Dk2yRp4ztPss\
    jy_8xGz5z8yso1weZv-AjfNyjOjG79h_i47W7stoqd4UKuvgBeB3pPe4X5M1VNcXGvqVjqvH471a0VLSKsOD54xG\
    aJF3eVaWM1sRyBpKLKWSCvxGhabU0c0tRD0bApzV0GUroTjr1h-cImpDPFcp_KBmt__LXrJigc5_Ew
    """,
    """
    1Awb5tfGViR9PKcwyNiomawgBqeDSa5RqHIxsY-L8jQ48otXNOlO_Kg6733nI_IbNnkRaXSlYPbI9dzSAvBVW4SW\
    rHD2XRgLOYqLCx1CVL89v2V_xAtAxxdr8nObfqmUNOKiOXf45YH11_hCD6gpCjPc_63xriSLdxwdYqedR_1E-4Uw\
    EYz_tWitE3cQn5ZrFCdUiSjN3C_VEWr2mP1WXYZ74P1RIii9-A7D9B9DLemTuN9ulVsZnPhCDJVD2aLf_RQ6IOk7\
    cvREZIQNodHiBIu2vsWewEIv8rCfOdcBKeW2l9z8ho5qbW0F4omEDto-MXmJRuz97xhGH7xB_YdaAw
    """,
    """
    tstB4y5hcCEBe1L06eg2wJa20EhWFtB3nbpIX1lLD-VluSMH1fQvtz5VivnGWsXi7hmFagLOFUgjY7VDgPlcLyka\
    8qiJpF6stt4sAPo8XF3QifwdQWHasjljLqQe6rdZExGoabKiL4EHrZbvIQUN1mVh1FSNlDaDE-6g2akF3n0ECFos\
    vzIzv_2iPfwOsPn6TcoZooUvYKzYmR-cs5TdMp_Tb5IyKPwsnQEOdIKlJQucaacXsNemvaggv_ou4w1rKGLmgPgI\
    4mzXCWL8t7TFMM1nwKHyw8sDiZbuMmgMPmExJkZlyoGMVEB5Dzqsibz-E_JwZEEYbp0MVsi-696bVw
    """,
  ]

  /// The public half of the first key, in PEM.
  package static let publicPEM = """
    -----BEGIN PUBLIC KEY-----
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAoXojbiefkp+THqjZMrlU
    CvCGFzSfjqeBDS5JlapwElqAcc9AUgffoPQ+HvgSwRgNOmPL14hFNjJ64P4n/K5k
    ZhsCE5prWPvOJlD0lEQH+sk5ukVAEctUJTx0Jma64i9dcb2g7VIVwcCFz+InWIdh
    BNj/c+bIbLPiRA/+Dk2yRp4ztPssjy/8xGz5z8yso1weZv+AjfNyjOjG79h/i47W
    7stoqd4UKuvgBeB3pPe4X5M1VNcXGvqVjqvH471a0VLSKsOD54xGaJF3eVaWM1sR
    yBpKLKWSCvxGhabU0c0tRD0bApzV0GUroTjr1h+cImpDPFcp/KBmt//LXrJigc5/
    EwIDAQAB
    -----END PUBLIC KEY-----

    """

  /// A private key of only 1024 bits, in PEM.
  package static let shortPEM = """
    -----BEGIN PRIVATE KEY-----
    MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBAOWKUYpXpqGYuFmS
    FhSBNYbe4ipEOirTSPhPvETgDRBMv7XORZL2UgeCaX0jjduaxaTYQGJsOkInj48a
    wZn6Wvt2SI2F9WpHE9nxGkSrDo2qF1QqEIDFG4J6QTjLzFrFSDQjQUBECaOf2Jj8
    WmESMakLtSyXIFaUQNECH/kxWIvLAgMBAAECgYEA2izCnE/7nhVfBCQKwKqfifZH
    2gzHjPUOopaHSJ/9SsToY5IQJ0PhbCnUwpEMwPM3cRvq9qIQLdkUZtzzr7t6xUQv
    IQQw2gB+FPRD+7YzqbNwbuIJvESMvC++u0MZpeafuciWQnME2USE+ZlouUHTADm+
    j/rYp7qPKfMxMPh3Y0ECQQD0NgSmhaX1lDZMwBF9eGI0LF0zI/nmDng6QDmGdTbQ
    9q1VzJ3iVq2CzuzS+UlHe0Da/2XAJtTtBKdqllQhJl4JAkEA8J7/nMUbjZTr4Wbf
    zvOXYmmqK0/CAiS5piiRtz2OxaA3jN4kUwnjWerj+koNJUGAvyPX3U0JklzGV375
    swlQMwJAChg1hwCdRJJ00CVcU7hnLsrqq1OAX+8XLyk6d4Fe27JmpdZIbHOyxmZx
    SaM+UTMaEjNebFvuj0GS/gfqwFgKqQJBAM3lUBbGt1gEWX9LtzFwUVa90gYzvnB1
    GoLq7h1dSGElQsOAhpajvG6Bx0ixuuPpVBC6zAkq1YjvaC0Qkvw3eO8CQBGbXPTh
    YDN2enlyS5iM13szO/sqZGzPpH0UsqkIDkXm/dv7vS06c2k84tCYPPHrzTBJ2njN
    P8Jqvx/n04eJY6w=
    -----END PRIVATE KEY-----
    """

  /// The modulus of the short key, in base64url.
  package static let shortModulus = """
    5YpRilemoZi4WZIWFIE1ht7iKkQ6KtNI-E-8ROANEEy_tc5FkvZSB4JpfSON25rFpNhAYmw6QiePjxrBmfpa-3ZI\
    jYX1akcT2fEaRKsOjaoXVCoQgMUbgnpBOMvMWsVINCNBQEQJo5_YmPxaYRIxqQu1LJcgVpRA0QIf-TFYi8s
    """
}
